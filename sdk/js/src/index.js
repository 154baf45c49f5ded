/** Hear, resolve and verify Soundmark Codes in a browser. */

export { ReceiverFailure } from "./failures.js";
export { Decoder, hear } from "./hearing/decoder.js";
export { Receiver } from "./receiver.js";

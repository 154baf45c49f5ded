/** Hear, resolve, verify and measure Soundmark Codes in a browser. */

export { DeliveryFailure, ReceiverFailure } from "./failures.js";
export { Decoder, hear } from "./hearing/decoder.js";
export { hearFile, listen } from "./hearing/listening.js";
export { createDeviceSecret, measure, MeasurementRefused } from "./measuring.js";
export { Receiver } from "./receiver.js";
export { Reporter } from "./reporter.js";
export { commit } from "./verifying/commitments.js";
export { readKeyHistory } from "./verifying/keys.js";
export { LogPolicy } from "./verifying/log_policy.js";
export { verifyLogProof } from "./verifying/log_proof.js";
export { OfflineResolution, verifyOfflinePack } from "./verifying/offline_pack.js";

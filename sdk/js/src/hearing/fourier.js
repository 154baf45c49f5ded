/** The Fourier transform of complex samples, in place, for sizes that are powers of two. */

export class Fourier {
  /** @param {number} size a power of two, at least 4 */
  constructor(size) {
    this.size = size;
    this._cos = Float32Array.from({ length: size }, (_, at) => Math.cos((2 * Math.PI * at) / size));
    this._sin = Float32Array.from({ length: size }, (_, at) => -Math.sin((2 * Math.PI * at) / size));
    this._isOdd = Math.log2(size) % 2 === 1;
    this._places = Uint16Array.from({ length: size }, (_, bin) => {
      let place = 0;
      for (let block = size; block > 1; ) {
        const parts = block === size && this._isOdd ? 2 : 4;
        block /= parts;
        place += (bin % parts) * block;
        bin = Math.floor(bin / parts);
      }
      return place;
    });
  }

  /**
   * Return where `transform` leaves a bin: it does not put them in order, because a table of places does that.
   *
   * @param {number} bin any integer; bins repeat
   */
  placeOf(bin) {
    return this._places[((bin % this.size) + this.size) % this.size];
  }

  /**
   * Transform by decimation in frequency: parts of a block are added in as many ways as there are parts, and turned.
   *
   * @param {Float32Array} real
   * @param {Float32Array} imaginary
   */
  transform(real, imaginary) {
    const size = this.size;
    if (this._isOdd) this._halve(real, imaginary);
    for (let block = this._isOdd ? size >> 1 : size; block > 1; block >>= 2) this._quarter(real, imaginary, block);
  }

  /**
   * @param {Float32Array} real
   * @param {Float32Array} imaginary
   */
  _halve(real, imaginary) {
    const [half, cos, sin] = [this.size >> 1, this._cos, this._sin];
    for (let at = 0; at < half; at += 1) {
      const a = real[at] - real[at + half];
      const b = imaginary[at] - imaginary[at + half];
      real[at] += real[at + half];
      imaginary[at] += imaginary[at + half];
      real[at + half] = a * cos[at] - b * sin[at];
      imaginary[at + half] = a * sin[at] + b * cos[at];
    }
  }

  /**
   * @param {Float32Array} real
   * @param {Float32Array} imaginary
   * @param {number} block
   */
  _quarter(real, imaginary, block) {
    const [size, quarter, turn, cos, sin] = [this.size, block >> 2, this.size / block, this._cos, this._sin];
    for (let at = 0; at < quarter; at += 1) {
      const c1 = cos[at * turn];
      const s1 = sin[at * turn];
      const c2 = cos[2 * at * turn];
      const s2 = sin[2 * at * turn];
      const c3 = cos[3 * at * turn];
      const s3 = sin[3 * at * turn];
      for (let p0 = at; p0 < size; p0 += block) {
        const p1 = p0 + quarter;
        const p2 = p1 + quarter;
        const p3 = p2 + quarter;
        const sumReal = real[p0] + real[p2];
        const sumImaginary = imaginary[p0] + imaginary[p2];
        const otherReal = real[p1] + real[p3];
        const otherImaginary = imaginary[p1] + imaginary[p3];
        const differenceReal = real[p0] - real[p2];
        const differenceImaginary = imaginary[p0] - imaginary[p2];
        // The difference of the other two, turned by a quarter.
        const turnedReal = imaginary[p1] - imaginary[p3];
        const turnedImaginary = real[p3] - real[p1];
        real[p0] = sumReal + otherReal;
        imaginary[p0] = sumImaginary + otherImaginary;
        const r1 = differenceReal + turnedReal;
        const i1 = differenceImaginary + turnedImaginary;
        const r2 = sumReal - otherReal;
        const i2 = sumImaginary - otherImaginary;
        const r3 = differenceReal - turnedReal;
        const i3 = differenceImaginary - turnedImaginary;
        real[p1] = r1 * c1 - i1 * s1;
        imaginary[p1] = r1 * s1 + i1 * c1;
        real[p2] = r2 * c2 - i2 * s2;
        imaginary[p2] = r2 * s2 + i2 * c2;
        real[p3] = r3 * c3 - i3 * s3;
        imaginary[p3] = r3 * s3 + i3 * c3;
      }
    }
  }
}

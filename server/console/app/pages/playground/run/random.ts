/** Returns a random whole number below 2^31, which every engine takes as a seed. */
export const newSeed = (): number => crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1

/** Returns the id of a run. `crypto.randomUUID` is only there in pages of https and of this machine. */
export const newRunId = (): string =>
  `run_${Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')}`

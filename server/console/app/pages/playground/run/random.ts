import { randomId } from '../../../components/random-id.ts'

/** Returns a random whole number below 2^31, which every engine takes as a seed. */
export const newSeed = (): number => crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1

/** Returns the id of a run. */
export const newRunId = (): string => `run_${randomId()}`

import { randomFillSync } from 'node:crypto'

const alphabet = Buffer.from('0123456789ABCDEFGHJKMNPQRSTVWXYZ')
const pool = Buffer.allocUnsafe(4096)
let used = pool.length
/** Buffer of the newest id. Its first ten characters stay the same within a millisecond. */
const id = Buffer.alloc(26)
let lastTime = -1

/** The next character of the alphabet for each character code; 0 for the last. */
const successor = Buffer.alloc(128)
for (let at = 1; at < alphabet.length; at++) successor[alphabet[at - 1]!] = alphabet[at]!

/**
 * Returns a ULID: 10 characters of milliseconds, 16 of randomness (80 bits), sortable by time. Within a millisecond each
 * id is the successor of the one before, so that objects created in a row, such as the jobs of a workflow, sort in that
 * order. The `ulid` package gets random bytes from the system for every character: 30 µs an id where this takes 0.2 µs,
 * and every request creates two.
 */
export function ulid(now = Date.now()): string {
  if (now === lastTime && increment()) return id.toString('latin1')
  if (used > pool.length - 16) {
    randomFillSync(pool)
    used = 0
  }
  for (let at = 9, rest = now; at >= 0; at--, rest = Math.floor(rest / 32)) id[at] = alphabet[rest % 32]!
  lastTime = now
  for (let at = 10; at < 26; at++) id[at] = alphabet[pool[used++]! & 31]!
  return id.toString('latin1')
}

/** Increments the random part of `id`; false when it overflows. */
function increment(): boolean {
  for (let at = 25; at >= 10; at--) {
    const next = successor[id[at]!]!
    id[at] = next === 0 ? alphabet[0]! : next
    if (next !== 0) return true
  }
  return false
}

const idPrefixes = [
  'org',
  'user',
  'tok',
  'job',
  'q',
  'req',
  'wkr',
  'evt',
  'file',
  'wf',
  'exec',
  'batch',
  'batch_req',
  'whe',
  'resp',
  'conv',
  'link',
  'msg',
  'upload',
  'part',
  'download',
  'pause',
] as const
export type IdPrefix = (typeof idPrefixes)[number]

/** Returns a new id such as `job_01K…`: the prefix of its kind and a ULID. `file-` has a dash, as in the OpenAI API. */
export const newId = (prefix: IdPrefix): string => `${prefix}${prefix === 'file' ? '-' : '_'}${ulid()}`

const form = new RegExp(
  `^(?:file-|(?:${idPrefixes.filter(prefix => prefix !== 'file').join('|')})_)[0-9A-HJKMNP-TV-Z]{26}$`,
)

/** A job has two ids with the same ULID: `job_X` in the job API, `q_X` in the slug API. */
export const queueIdOf = (jobId: string): string => `q_${jobId.slice('job_'.length)}`
export const jobIdOf = (queueId: string): string => `job_${queueId.slice('q_'.length)}`

/**
 * Whether a string from outside has the form of one of our ids, or of one with this prefix: `job_`. Check it before using
 * it in a query or a path.
 */
export const isId = (value: string, prefix = ''): boolean => value.startsWith(prefix) && form.test(value)

/** A seed for a job: the same for each of its attempts, so that a second one produces the same result. */
export function jobSeed(jobId: string): number {
  let seed = 0
  for (const character of jobId) seed = (Math.imul(seed, 31) + character.charCodeAt(0)) | 0
  return seed >>> 1
}

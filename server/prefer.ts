/** What a client prefers (RFC 7240). Unknown preferences are ignored. */
export interface Preference {
  /** A job, and its id at once, instead of an answer on this connection. */
  later: boolean
  /** To wait for the answer where the default is not to. */
  wait: boolean
  /** The most that it wants to wait for a free slot, milliseconds. */
  waitMs: number
}

const nothing: Preference = { later: false, wait: false, waitMs: Number.POSITIVE_INFINITY }

/** Reads a `Prefer` header. */
export function preferenceOf(header: string | string[] | undefined): Preference {
  if (header === undefined) return nothing
  const preferences = String(header)
    .split(',')
    .map(preference => preference.split(';')[0]!.trim().toLowerCase())
  const wait = preferences.map(preference => /^wait\s*=\s*"?(\d{1,6})"?$/.exec(preference)?.[1]).find(Boolean)
  return {
    later: preferences.includes('respond-async'),
    wait: wait === undefined ? preferences.includes('wait') : Number(wait) > 0,
    waitMs: wait === undefined ? nothing.waitMs : Number(wait) * 1000,
  }
}

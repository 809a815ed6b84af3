/** What a client prefers (RFC 7240). Unknown preferences are ignored. */
export interface Preference {
  /** Answer at once with the id of a job, instead of the result. */
  later: boolean
  /** Wait for the result even if the default is not to wait. */
  wait: boolean
  /** Maximum wait for a free slot, milliseconds. */
  waitMs: number
  /** For how long a stream goes on without its client, seconds; 0: it ends with the connection. */
  resumeSeconds: number
}

const nothing: Preference = { later: false, wait: false, waitMs: Number.POSITIVE_INFINITY, resumeSeconds: 0 }

/** Reads a `Prefer` header. */
export function preferenceOf(header: string | string[] | undefined): Preference {
  if (header === undefined) return nothing
  const preferences = String(header)
    .split(',')
    .map(preference => preference.split(';')[0]!.trim().toLowerCase())
  const secondsOf = (name: string) =>
    preferences.map(preference => new RegExp(`^${name}\\s*=\\s*"?(\\d{1,6})"?$`).exec(preference)?.[1]).find(Boolean)
  const wait = secondsOf('wait')
  return {
    later: preferences.includes('respond-async'),
    wait: wait === undefined ? preferences.includes('wait') : Number(wait) > 0,
    waitMs: wait === undefined ? nothing.waitMs : Number(wait) * 1000,
    resumeSeconds: Number(secondsOf('resume') ?? 0),
  }
}

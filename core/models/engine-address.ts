/** One address of an engine that runs elsewhere, for people. */
export interface EngineAddress {
  /** Without the path and without a login. */
  url: string
  /** `unavailable`: its last requests failed, so others are preferred. */
  state: 'ready' | 'unavailable'
  /** Failed requests in a row. */
  failures: number
  /** Why the last request failed, as the end of a sentence; null since one has succeeded. */
  reason: string | null
  /** Milliseconds until it is tried again; null while it is ready. */
  retryMs: number | null
}

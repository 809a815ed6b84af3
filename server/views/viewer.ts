import type { Caller } from '../../core/accounts/accounts.ts'

/** The reader of an object: the caller whose organization is searched, and the origin of the URLs in the object. */
export interface Viewer {
  readonly caller: Caller
  readonly origin: string
}

import type { Caller } from '../../core/accounts/accounts.ts'

/** For whom an object is shown: whose objects are looked for, and the origin of the URLs in it. */
export interface Viewer {
  readonly caller: Caller
  readonly origin: string
}

import { lookup as lookUp } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { mayReach, UrlRefused, type UrlRules } from './checked-url.ts'

export interface Answer {
  address: string
  family: number
}
/** Resolves all addresses of a name, like `dns.lookup` with `all`. */
export type Resolve = (name: string, done: (cause: Error | null, answers: Answer[]) => void) => void

export const resolveAll: Resolve = (name, done) => lookUp(name, { all: true }, done)

/**
 * The name resolution of one connection: all addresses of the name must be allowed, and the connection goes to one of
 * them, so that a second DNS answer cannot change the target. A literal address does not pass here: check the URL.
 */
export const checkedLookup =
  (port: number, rules: UrlRules, resolve: Resolve): LookupFunction =>
  (name, _options, done) => {
    resolve(name, (cause, answers) => {
      if (cause) return done(cause, [])
      const refused = answers.length === 0 || answers.some(({ address }) => !mayReach(address, port, rules))
      return refused ? done(new UrlRefused('address'), []) : done(null, answers)
    })
  }

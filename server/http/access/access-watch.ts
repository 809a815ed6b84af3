import type { Accounts, Caller } from '../../../core/accounts/accounts.ts'
import { Failure } from '../../../core/failure.ts'
import { inTimeSlices } from '../../../core/time-slice.ts'
import { type Access, scopeRefusal } from './auth.ts'

/** Another process can change a token without notifying the server, so tokens are read this often. */
const checkMs = 500

/** A request whose response stays open. */
export interface OpenRequest {
  readonly organizationId: string | undefined
  readonly credential: string | undefined
  readonly route: { scope: Access }
}

interface Watched {
  exchange: OpenRequest
  end: (failure: Failure) => void
}

/**
 * Checks the tokens of responses that stay open: event streams, log followers and held `?wait=` requests. Ends each of
 * them within a second after its token was revoked, disabled, expired or lost the scope of the route. Each token is
 * read once per check, however many responses it has open.
 */
export function openAccessWatch({ accounts }: { accounts: Pick<Accounts, 'authenticate'> }) {
  const bySecret = new Map<string | undefined, Set<Watched>>()
  let timer: NodeJS.Timeout | undefined
  let checking = false

  /** Returns the caller of the secret, or the failure of its token; undefined when the token could not be read. */
  function read(secret: string | undefined): Caller | Failure | undefined {
    try {
      return accounts.authenticate(secret)
    } catch (thrown) {
      // An unreadable database does not invalidate the token.
      return thrown instanceof Failure ? thrown : undefined
    }
  }

  function* check(): Iterator<void, void> {
    for (const [secret, all] of bySecret) {
      const caller = read(secret)
      // Iterates over a copy, because ending a response removes it from the set.
      for (const { exchange, end } of caller ? [...all] : []) {
        const { scope } = exchange.route
        const failure = caller instanceof Failure ? caller : scope !== 'public' && scopeRefusal(caller!, scope)
        if (!failure) continue
        end(failure)
        yield
      }
      yield
    }
  }

  async function checkAll() {
    if (checking) return
    checking = true
    await inTimeSlices(check()).finally(() => (checking = false))
  }

  return {
    /**
     * Calls `end` once when the caller may no longer read this response, with the failure that a new request would get.
     * Returns the function that ends the watch; calling it again does nothing. Requests without a caller are not
     * watched.
     */
    watch(exchange: OpenRequest, end: (failure: Failure) => void): () => void {
      if (exchange.organizationId === undefined) return () => {}
      const secret = exchange.credential
      const all = bySecret.get(secret) ?? new Set()
      bySecret.set(secret, all)
      const watched: Watched = {
        exchange,
        end(failure) {
          stop()
          end(failure)
        },
      }
      function stop() {
        if (!all.delete(watched) || all.size > 0) return
        if (bySecret.get(secret) === all) bySecret.delete(secret)
        if (bySecret.size > 0) return
        clearInterval(timer)
        timer = undefined
      }
      all.add(watched)
      timer ??= setInterval(() => void checkAll(), checkMs).unref()
      return stop
    },
  }
}
export type AccessWatch = ReturnType<typeof openAccessWatch>

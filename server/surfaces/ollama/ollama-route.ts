import type { IncomingMessage } from 'node:http'
import type { Accounts, Caller } from '../../../core/accounts/accounts.ts'
import { Failure } from '../../../core/failure.ts'
import type { Config } from '../../../core/models/config.ts'
import { isLocal } from '../../http/access/auth.ts'
import { hostName } from '../../http/connection/host.ts'
import { routeOf } from '../../http/request/route.ts'

/** The names of this machine in a Host header. Another name may be one that a web page has rebound to it. */
const ownName = /^(localhost|::1|127\.\d+\.\d+\.\d+)$/

/**
 * Whether a program on this machine sent the request itself. Browsers are no such programs, whatever page is open in
 * them: they name it in `Origin` or its relation to this server in `Sec-Fetch-Site`.
 */
export const isOwnProgram = (req: IncomingMessage): boolean =>
  isLocal(req) &&
  req.headers.origin === undefined &&
  req.headers['sec-fetch-site'] === undefined &&
  req.headers.referer === undefined &&
  ownName.test(hostName(req.headers.host ?? '') ?? '')

/**
 * Returns the caller of a request that comes without a token or session, as `ollama.loopback_token` allows;
 * undefined for every other request, which authenticates itself. Throws Failure `missing_api_key`, also for a request
 * that the setting does not let in, and the codes of `accounts.authenticate`.
 */
function loopbackCaller(
  { req, credential }: { req: IncomingMessage; credential: string | undefined },
  { accounts, config }: { accounts: Pick<Accounts, 'authenticateId'>; config: Pick<Config, 'ollama'> },
): Caller | undefined {
  const id = config.ollama.loopback_token
  if (credential !== undefined || req.headers.authorization !== undefined) return undefined
  if (id === undefined)
    throw new Failure(
      'missing_api_key',
      'No API token was sent. Send one as "Authorization: Bearer sk-infer-…", or set \'ollama.loopback_token\' in infer.yaml for programs on this machine that cannot (infer help coming-from-ollama).',
    )
  if (isOwnProgram(req)) return accounts.authenticateId(id)
  throw new Failure(
    'missing_api_key',
    'No API token was sent, and \'ollama.loopback_token\' in infer.yaml is only for programs on this machine that connect to 127.0.0.1 or localhost themselves: not through a proxy, and not from a web page. Send a token as "Authorization: Bearer sk-infer-…".',
  )
}

/** Returns the error of a request in Ollama's form: the message alone, besides what helps to find its cause. */
export const ollamaErrors = (failure: Failure, exchange: { id: string }) => ({
  status: failure.status,
  body: { error: failure.message, code: failure.code, ...failure.facts, request_id: exchange.id },
})

/** Makes a route of the Ollama-compatible API. */
export const ollamaRoute = routeOf({
  tag: 'Ollama',
  errors: ollamaErrors,
  formIsJson: true,
  callerWithoutToken: loopbackCaller,
})

import { z } from 'zod'
import type { Caller } from '../../../core/accounts/accounts.ts'
import { sessionCredential, sessionEnded } from '../../../core/accounts/sessions.ts'
import { Failure } from '../../../core/failure.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  object,
  optionalStringUpTo,
  string,
} from '../../../core/schemas/fields.ts'
import { scopes } from '../../../core/store/store.ts'
import { limitingGuesses } from '../../http/access/auth.ts'
import { ownsMachine } from '../../http/access/reach.ts'
import { isFromConsole, sessionCookie, sessionIdOf } from '../../http/access/session-cookie.ts'
import { clientAddress } from '../../http/connection/forwarded.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { type Route, routeOf } from '../../http/request/route.ts'
import { seconds } from '../../views/view-of.ts'

const route = routeOf({ tag: 'Console' })

const SignIn = z
  .strictObject({
    token: optionalStringUpTo(256, 'Secret of a token: `sk-infer-…`.'),
    code: optionalStringUpTo(256, 'One-time code of `POST /api/session/codes`.'),
  })
  .refine(({ token, code }) => (token === undefined) !== (code === undefined), {
    message: "Send either 'token' or 'code'.",
    path: ['token'],
  })
  .meta({ id: 'SessionCreate', description: 'What a session begins with: a token or a one-time code.' })

const Session = namedObject('Session', 'A session of the web console.', {
  token: object('The token that the session stands for.', {
    id: string('Id of the token.'),
    name: string('Name of the token.'),
  }),
  organization: object('Organization of the token.', {
    id: string('Id of the organization.'),
    name: string('Name of the organization.'),
  }),
  scopes: array('What the session may do: the scopes of the token.', z.enum(scopes)),
  owns_machine: boolean('Whether the organization owns the machine: only then it may load models and read logs.'),
  currency: string('Currency of the configured prices, and of all costs (ISO 4217).'),
  expires_at: integer(
    'When the session ends unless it is used before, in Unix seconds. Each request moves it 12 hours on.',
  ),
})

const SessionCode = namedObject('SessionCode', 'A one-time code for signing in to the web console.', {
  code: string('The code. It begins one session within two minutes.'),
  url: string('Address that opens the console signed in with the code.'),
  expires_at: integer('When the code expires, in Unix seconds.'),
})
const SessionEnded = namedObject('SessionEnded', 'Confirms that the session has ended.', {
  ended: z.literal(true).describe('Always true.'),
})

const onlyConsole =
  'The cookie authenticates only requests with the header `X-Infer-Console: 1` that a page of this server sends (`Sec-Fetch-Site: same-origin`).'

/** Why a session is refused to whoever has a token. */
const refusals = [
  'token_revoked',
  'token_expired',
  'organization_disabled',
  'outside_allowed_hours',
  'origin_not_allowed',
  'not_found',
] as const

type SessionOwners = Owners<'accounts' | 'config' | 'sessions' | 'wrongTokens'>

/** Routes of the sessions of the web console. A session has exactly the rights of its token, and ends with it. */
export function sessionRoutes({ accounts, config, sessions, wrongTokens }: SessionOwners): Route[] {
  function requireConsole() {
    if (!config.console)
      throw new Failure('not_found', "The console is switched off by 'console: false' in infer.yaml.")
  }

  function requirePage(exchange: ClientExchange) {
    requireConsole()
    if (isFromConsole(exchange.req, config)) return
    throw new Failure(
      'origin_not_allowed',
      "Sessions are for the console of this server: the request needs the header 'X-Infer-Console: 1' and must come from a page of this server. Other clients send the token with each request.",
    )
  }

  const view = (caller: Caller, exchange: ClientExchange, expiresAt: number) => ({
    token: { id: caller.tokenId, name: caller.token.name },
    organization: { id: caller.organizationId, name: caller.token.organizationName },
    scopes: [...caller.scopes],
    owns_machine: ownsMachine(exchange),
    currency: config.currency,
    expires_at: seconds(expiresAt),
  })

  /** Returns the id of the token that may sign in. */
  function tokenOf(by: z.output<typeof SignIn>, exchange: ClientExchange) {
    const from = { wrong: wrongTokens, address: clientAddress(exchange.req, config.trusted_proxies) }
    return limitingGuesses(
      () => (by.code === undefined ? accounts.authenticate(by.token).tokenId : sessions.useCode(by.code)),
      from,
    )
  }

  async function end(id: string) {
    await sessions.end(id)
    await accounts.forgetVerified()
  }

  return [
    route('POST /api/session', 'public', {
      bucket: 'api',
      summary: 'Create session',
      example: { token: 'sk-infer-…' },
      description: `Exchanges a token or a one-time code for a session of the web console. Sets the cookie of the session, and ends the session that the browser had. ${onlyConsole}`,
      status: 201,
      body: SignIn,
      response: Session,
      errorCodes: ['invalid_api_key', ...refusals, 'rate_limit'],
      async handle({ body }, exchange) {
        requirePage(exchange)
        const tokenId = tokenOf(body, exchange)
        const previous = sessionIdOf(exchange.req, config)
        if (previous !== undefined) await end(previous)
        const { id, expiresAt } = await sessions.begin(tokenId)
        // The same checks as for every request: a code may be older than the revocation of its token.
        exchange.caller = accounts.authenticate(sessionCredential(id))
        exchange.addHeaders(['set-cookie', sessionCookie(exchange.req, id, config)])
        return view(exchange.caller, exchange, expiresAt)
      },
    }),
    route('GET /api/session', 'public', {
      // A session may lack every scope of reading: its token decides.
      summary: 'Get session',
      description: `Returns the session of the cookie, whatever its scopes. ${onlyConsole}`,
      response: Session,
      errorCodes: ['missing_api_key', ...refusals],
      handle(_, exchange) {
        requirePage(exchange)
        const id = sessionIdOf(exchange.req, config)
        const used = id === undefined ? undefined : sessions.use(id)
        if (id === undefined || !used) throw sessionEnded()
        exchange.caller = accounts.authenticate(sessionCredential(id))
        return view(exchange.caller, exchange, used.expiresAt)
      },
    }),
    route('DELETE /api/session', 'public', {
      bucket: 'api',
      summary: 'Delete session',
      description: 'Ends the session of the cookie and removes the cookie. Does nothing without a session.',
      response: SessionEnded,
      errorCodes: ['origin_not_allowed', 'not_found'],
      async handle(_, exchange) {
        requirePage(exchange)
        const id = sessionIdOf(exchange.req, config)
        if (id !== undefined) await end(id)
        exchange.addHeaders(['set-cookie', sessionCookie(exchange.req, '', config)])
        return { ended: true as const }
      },
    }),
    route('POST /api/session/codes', 'user:read', {
      bucket: 'api',
      summary: 'Create sign-in code',
      description:
        'Returns an address that opens the console signed in as the token of the request, once and within two minutes. The code is in the fragment of the address, which browsers send to no server.',
      status: 201,
      response: SessionCode,
      errorCodes: ['not_found'],
      handle(_, exchange) {
        requireConsole()
        const { code, expiresAt } = sessions.createCode(exchange.caller.tokenId)
        const url = `${exchange.origin}/console/sign-in#code=${code}`
        return { code, url, expires_at: seconds(expiresAt) }
      },
    }),
  ]
}

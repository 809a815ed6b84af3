import { z } from 'zod'
import type { Caller } from '../../core/accounts/accounts.ts'
import { Failure } from '../../core/failure.ts'
import { newId } from '../../core/ids.ts'
import type { Log } from '../../core/log.ts'
import { failureOfIssues, parsed } from '../../core/schemas/issues.ts'
import type { SwapSet } from '../../core/swap-set.ts'
import { authenticate, credentialOf, scopeRefusal } from './access/auth.ts'
import { rateHeaders } from './access/rate-headers.ts'
import { sessionCredentialOf } from './access/session-cookie.ts'
import { sendEmbedded } from './answer/send-embedded.ts'
import { discardRest, nameAsJson, readJson } from './body/body.ts'
import { clientAddress } from './connection/forwarded.ts'
import type { RequestEvent } from './http-app.ts'
import { Call } from './request/call.ts'
import { type RouteErrors, refusesUnknown } from './request/endpoint.ts'
import { errorAnswer, refuse } from './request/errors.ts'
import { JsonText } from './request/json-text.ts'
import type { Owners } from './request/owners.ts'
import { type Query, queryOf } from './request/query.ts'
import { askForRegion, regionIn } from './request/region.ts'
import type { Route } from './request/route.ts'

interface DispatchOptions {
  /** What dispatching itself needs, beyond the handlers. */
  owners: Pick<
    Owners,
    | 'access'
    | 'accounts'
    | 'admission'
    | 'config'
    | 'cpu'
    | 'limiter'
    | 'metrics'
    | 'steady'
    | 'streamLimits'
    | 'streams'
    | 'tokenLimiter'
    | 'wrongTokens'
  >
  /** The calls that are being answered. */
  calls: SwapSet<Call>
}

/** A request of the app, with its call once it has matched a route. */
export interface HttpEvent extends RequestEvent {
  call: Call | undefined
}

/**
 * Runs a matched route: authenticates, checks the scope, counts against the rate limit, validates the input and calls
 * the handler. Throws the failure of any step; `answerFailure` answers it and `endCall` ends the call.
 */
export async function dispatch(route: Route, event: HttpEvent, { owners, calls }: DispatchOptions): Promise<void> {
  const { req, res, params } = event
  // An unknown token is refused at once, as on every other route: its request takes no turn of the streams.
  const credential = credentialOf(req.headers) ?? sessionCredentialOf(req, owners.config)
  if (route.eventStream && owners.accounts.find(credential ?? '')) {
    await owners.streams.beforeOpening(() => res.destroyed)
    if (res.destroyed) return
  }
  const call = (event.call = new Call(req, res, route, params, credential, owners))
  calls.add(call)
  try {
    await handle(call, route, owners)
  } catch (thrown) {
    await discardRest(req)
    throw thrown
  }
}

async function handle(call: Call, route: Route, owners: DispatchOptions['owners']): Promise<void> {
  const { req, params } = call
  // With `metrics: token` a connection from this machine needs a token too.
  const access = route.scope === 'loopback' && owners.config.metrics === 'token' ? 'admin:read' : route.scope
  const caller =
    (route.scope === 'public' ? undefined : route.callerWithoutToken?.(call, owners)) ??
    authenticate(call, access, owners.accounts, {
      wrong: owners.wrongTokens,
      address: clientAddress(req, owners.config.trusted_proxies),
    })
  if (caller) {
    enter(call, caller, owners)
    askForRegion(call, regionIn(req.headers['x-region']))
  }
  if (route.formIsJson) nameAsJson(req)
  const query = queryOf(call)
  refuseUnknownQuery(route, query)
  if ('answer' in route) return route.answer(call)
  const body = route.body ? await readJson(call, owners) : undefined
  const input = {
    params: check(route.params, params),
    query: check(route.query, query),
    body: check(route.body, body),
  }
  const value: unknown = await route.handle(input, call)
  return sendJson(call, value instanceof JsonText ? value : new JsonText(JSON.stringify(value)))
}

/**
 * Counts the request against the limits of its caller, and tells them in its headers. Throws Failure `insufficient_scope`,
 * which counts as nothing, and `rate_limit`.
 */
function enter(call: Call, caller: Caller, { limiter, tokenLimiter }: Pick<Owners, 'limiter' | 'tokenLimiter'>): void {
  const { scope, bucket } = call.route
  call.caller = caller
  const unscoped = scope === 'public' ? undefined : scopeRefusal(caller, scope)
  const entry = unscoped ? limiter.look(caller, bucket) : limiter.enter(caller, bucket)
  call.leaveLimits = entry.leave
  call.addHeaders(rateHeaders(bucket, caller, entry, tokenLimiter.look(caller)))
  const refused = unscoped ?? entry.refused
  if (refused) throw refused
}

/** Answers a failed request in the error format of its route, or that of `errorsBelow` if it has matched no route. */
export function answerFailure(
  thrown: unknown,
  { call, req, res }: HttpEvent,
  { log, errorsBelow }: { log: Log; errorsBelow: (url: string | undefined) => RouteErrors | undefined },
): void {
  const failure = Failure.from(thrown)
  if (call) fail(call, failure, log)
  else refuse(res, failure, newId('req'), errorsBelow(req.url))
}

/** Ends the call of a request that has been answered: releases what it holds and records it. */
export function endCall({ call, res }: HttpEvent, { owners, calls }: DispatchOptions): void {
  if (!call) return
  call.releaseBody()
  call.keyLock?.release()
  call.leaveLimits()
  calls.delete(call)
  owners.metrics.answered(call.route, res.statusCode, call.elapsedMs)
}

/** Sends the JSON that a handler returned. */
export async function sendJson(call: Call, { text, status, embedded }: JsonText): Promise<void> {
  const code = status ?? call.route.status ?? 200
  if (embedded.length === 0) call.send(code, text)
  else await sendEmbedded(call, code, text, embedded)
}

/** Ends a running call, with an error response unless its response has begun. */
export function interrupt(call: Call, failure: Failure, log: Log): void {
  call.stop(failure)
  fail(call, failure, log)
}

const check = (schema: z.ZodType | undefined, value: unknown): unknown => schema && parsed(schema, value)

/** Schema of routes without query parameters. */
const noParameters = z.strictObject({})

/** Refuses query parameters that the route does not declare, before its body is read. */
function refuseUnknownQuery({ path, query: declared }: Route, query: Query): void {
  const schema: z.ZodType | undefined = declared ?? (refusesUnknown(path) ? noParameters : undefined)
  const issues = schema?.safeParse(query).error?.issues.filter(({ code }) => code === 'unrecognized_keys') ?? []
  if (issues.length > 0) throw failureOfIssues({ issues }, query, schema)
}

function fail(call: Call, failure: Failure, log: Log): void {
  if (failure.code === 'internal_error')
    log.error('A request failed inside infer', { request: call.id, path: call.route.path }, failure.cause)
  if (failure.code === 'cancelled' && call.disconnected) {
    // The client cannot read an answer; the status is for the metrics.
    call.res.statusCode = failure.status
    if (!call.res.headersSent) call.res.destroy()
    return
  }
  const { status, body, headers } = errorAnswer(failure, call.id, call.route.errors)
  call.send(status, body, 'application/json', headers)
}

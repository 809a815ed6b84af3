import { z } from 'zod'
import type { Caller } from '../../core/accounts/accounts.ts'
import type { Entry } from '../../core/accounts/limiter.ts'
import { Failure } from '../../core/failure.ts'
import { newId } from '../../core/ids.ts'
import type { Log } from '../../core/log.ts'
import { relayedHeader } from '../../core/models/relayed-header.ts'
import { failureOfIssues, parsed } from '../../core/schemas/issues.ts'
import type { SwapSet } from '../../core/swap-set.ts'
import { authenticate, credentialOf, scopeRefusal } from './access/auth.ts'
import { rateHeaders } from './access/rate-headers.ts'
import { sessionCredentialOf } from './access/session-cookie.ts'
import { sendEmbedded } from './answer/send-embedded.ts'
import { nameAsJson, readJson } from './body/body.ts'
import { discardRest } from './body/unread-body.ts'
import { clientAddress } from './connection/forwarded.ts'
import type { RequestEvent } from './http-app.ts'
import { type RouteErrors, refusesUnknown } from './request/endpoint.ts'
import { errorAnswer, refuse } from './request/errors.ts'
import { ClientExchange } from './request/exchange.ts'
import { JsonText } from './request/json-text.ts'
import type { Owners } from './request/owners.ts'
import { type Query, queryOf } from './request/query.ts'
import { askForRegion, regionIn } from './request/region.ts'
import type { Route } from './request/route.ts'

interface RouteRunOptions {
  /** What every route needs, whatever its handler needs. */
  owners: Owners<
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
  /** The requests that are being answered. */
  exchanges: SwapSet<ClientExchange>
}

/** A request of the app. `exchange` is undefined until it has matched a route. */
export interface HttpEvent extends RequestEvent {
  exchange: ClientExchange | undefined
}

/**
 * Runs a matched route: authenticates, checks the scope, counts against the rate limit, validates the input and calls
 * the handler. Throws, or rejects with, the failure of any step; `answerFailure` answers it and `endExchange` ends the
 * exchange.
 */
export function runRoute(route: Route, event: HttpEvent, options: RouteRunOptions): void | Promise<void> {
  const { owners } = options
  // An unknown token is refused at once, as on every other route: its request takes no turn of the streams.
  const credential = credentialOf(event.req.headers) ?? sessionCredentialOf(event.req, owners.config)
  return route.eventStream && owners.accounts.find(credential ?? '')
    ? openInTurn(route, event, credential, options)
    : beginExchange(route, event, credential, options)
}

async function openInTurn(route: Route, event: HttpEvent, credential: string | undefined, options: RouteRunOptions) {
  const { res } = event
  await options.owners.streams.beforeOpening(() => res.destroyed)
  if (!res.destroyed) await beginExchange(route, event, credential, options)
}

function beginExchange(
  route: Route,
  event: HttpEvent,
  credential: string | undefined,
  { owners, exchanges }: RouteRunOptions,
): void | Promise<void> {
  const { req, res, params } = event
  const exchange = (event.exchange = new ClientExchange(req, res, route, params, credential, owners))
  exchanges.add(exchange)
  return handle(exchange, route, owners)
}

/** Not async up to the route's own function: every further promise costs every request. */
function handle(exchange: ClientExchange, route: Route, owners: RouteRunOptions['owners']): void | Promise<void> {
  const { req } = exchange
  // With `metrics: token` a connection from this machine needs a token too.
  const access = route.scope === 'loopback' && owners.config.metrics === 'token' ? 'admin:read' : route.scope
  const caller =
    (route.scope === 'public' ? undefined : route.callerWithoutToken?.(exchange, owners)) ??
    authenticate(exchange, access, owners.accounts, {
      wrong: owners.wrongTokens,
      address: clientAddress(req, owners.config.trusted_proxies),
    })
  const waits = caller && enter(exchange, caller, owners)
  return waits ? waits.then(() => answer(exchange, route, owners, caller)) : answer(exchange, route, owners, caller)
}

function answer(
  exchange: ClientExchange,
  route: Route,
  owners: RouteRunOptions['owners'],
  caller: Caller | undefined,
): void | Promise<void> {
  const { req } = exchange
  if (caller) askForRegion(exchange, regionIn(req.headers['x-region']))
  if (caller && req.headers[relayedHeader] !== undefined) exchange.caller = { ...exchange.caller, isRelayed: true }
  if (route.formIsJson) nameAsJson(req)
  const query = queryOf(exchange)
  refuseUnknownQuery(route, query)
  return 'answer' in route ? route.answer(exchange) : answerWithJson(exchange, route, query, owners)
}

async function answerWithJson(
  exchange: ClientExchange,
  route: Exclude<Route, { answer: unknown }>,
  query: Query,
  owners: RouteRunOptions['owners'],
): Promise<void> {
  const { params } = exchange
  const body = route.body ? await readJson(exchange, owners) : undefined
  const input = {
    params: check(route.params, params),
    query: check(route.query, query),
    body: check(route.body, body),
  }
  const value: unknown = await route.handle(input, exchange)
  return sendJson(exchange, value instanceof JsonText ? value : new JsonText(JSON.stringify(value)))
}

/**
 * Counts the request against the limits of its caller, and tells them in its headers. Throws Failure `insufficient_scope`,
 * which counts as nothing, and `rate_limit`.
 */
function enter(
  exchange: ClientExchange,
  caller: Caller,
  { limiter, tokenLimiter }: Owners<'limiter' | 'tokenLimiter'>,
): void | Promise<void> {
  const { scope, bucket } = exchange.route
  exchange.caller = caller
  const unscoped = scope === 'public' ? undefined : scopeRefusal(caller, scope)
  const entry = unscoped ? limiter.look(caller, bucket) : limiter.enter(caller, bucket)
  if (!(entry instanceof Promise)) return entered(exchange, caller, entry, tokenLimiter, unscoped)
  return entry.then(checked => {
    entered(exchange, caller, checked, tokenLimiter)
    if (exchange.disconnected) throw new Failure('cancelled', 'The request was cancelled.')
  })
}

function entered(
  exchange: ClientExchange,
  caller: Caller,
  entry: Entry,
  tokenLimiter: Owners<'tokenLimiter'>['tokenLimiter'],
  unscoped?: Failure,
): void {
  exchange.leaveLimits = entry.leave
  exchange.addHeaders(rateHeaders(exchange.route.bucket, caller, entry, tokenLimiter.look(caller)))
  const refused = unscoped ?? entry.refused
  if (refused) throw refused
}

/** Answers a failed request in the error format of its route, or that of `errorsBelow` if it has matched no route. */
export function answerFailure(
  thrown: unknown,
  { exchange, req, res }: HttpEvent,
  { log, errorsBelow }: { log: Log; errorsBelow: (url: string | undefined) => RouteErrors | undefined },
): void {
  const failure = Failure.from(thrown)
  discardRest(req)
  if (exchange) fail(exchange, failure, log)
  else refuse(res, failure, newId('req'), errorsBelow(req.url))
}

/** Ends the exchange of an answered request: releases what it holds and records it. */
export function endExchange({ exchange, res }: HttpEvent, { owners, exchanges }: RouteRunOptions): void {
  if (!exchange) return
  exchange.releaseBody()
  exchange.keyLock?.release()
  exchange.leaveLimits()
  exchanges.delete(exchange)
  owners.metrics.answered(exchange.route, res.statusCode, exchange.elapsedMs)
}

/** Sends the JSON that a handler returned. */
export async function sendJson(exchange: ClientExchange, { text, status, embedded }: JsonText): Promise<void> {
  const code = status ?? exchange.route.status ?? 200
  if (embedded.length === 0) exchange.send(code, text)
  else await sendEmbedded(exchange, code, text, embedded)
}

/** Ends a running request, with an error response unless its response has begun. */
export function interrupt(exchange: ClientExchange, failure: Failure, log: Log): void {
  exchange.stop(failure)
  fail(exchange, failure, log)
}

const check = (schema: z.ZodType | undefined, value: unknown) => schema && parsed(schema, value)

/** Schema of routes without query parameters. */
const noParameters = z.strictObject({})

/** Refuses query parameters that the route does not declare, before its body is read. */
function refuseUnknownQuery({ path, query: declared }: Route, query: Query) {
  const schema: z.ZodType | undefined = declared ?? (refusesUnknown(path) ? noParameters : undefined)
  const issues = schema?.safeParse(query).error?.issues.filter(({ code }) => code === 'unrecognized_keys') ?? []
  if (issues.length > 0) throw failureOfIssues({ issues }, query, schema)
}

function fail(exchange: ClientExchange, failure: Failure, log: Log) {
  if (failure.code === 'internal_error')
    log.error(
      'A request failed inside infer',
      { request: exchange.id, path: exchange.route.path, traceparent: exchange.traceparent },
      failure.cause,
    )
  if (failure.code === 'cancelled' && exchange.disconnected) {
    // The client cannot read an answer; the status is for the metrics.
    exchange.res.statusCode = failure.status
    if (!exchange.res.headersSent) exchange.res.destroy()
    return
  }
  const { status, body, headers } = errorAnswer(failure, exchange.id, exchange.route.errors)
  exchange.send(status, body, 'application/json', headers)
}

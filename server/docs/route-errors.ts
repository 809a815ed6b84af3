import { type FailureCode, failures } from '../../core/failure.ts'
import { type AnyEndpoint, refusesUnknown } from '../http/request/endpoint.ts'

const ofToken: readonly FailureCode[] = [
  'missing_api_key',
  'invalid_api_key',
  'token_revoked',
  'token_expired',
  'insufficient_scope',
  'organization_disabled',
  'outside_allowed_hours',
  'rate_limit',
]
const ofValues: readonly FailureCode[] = ['invalid_type', 'invalid_value', 'string_above_max_length']
const ofBody: readonly FailureCode[] = [
  ...ofValues,
  'invalid_json',
  'missing_required_parameter',
  'array_above_max_length',
  'payload_too_large',
  'unsupported_media_type',
]
/** For all routes: the server starts, stops, fails, or does not accept the host name. */
const ofServer: readonly FailureCode[] = ['invalid_host', 'internal_error', 'model_warming_up', 'shutting_down']

/** Returns the codes that a route can answer, those that follow from its scope and its schemas included. */
export function errorCodesOf(route: AnyEndpoint): ReadonlySet<FailureCode> {
  const { scope, body, form, query, path, errorCodes = [] } = route
  return new Set<FailureCode>([
    ...errorCodes,
    ...ofServer,
    ...(scope === 'public' ? [] : ofToken),
    ...(query ? ofValues : []),
    ...(body || form ? ofBody : []),
    ...(refusesUnknown(path) ? ['unknown_parameter' as const] : []),
    ...(form ? (['disk_full', 'storage_full'] as const) : []),
  ])
}

/**
 * Returns the status of a failure as the route answers it: fal's clients expect 422 for a wrong body, and Anthropic's 529
 * where others answer 503.
 */
export function errorStatus(code: FailureCode, { path, body }: AnyEndpoint): number {
  const { status } = failures[code]
  if (status === 503 && path.startsWith('/anthropic/')) return 529
  return status === 400 && body && path.startsWith('/fal/') ? 422 : status
}

/** Returns the codes with this status that every route with a scope can answer. */
export const commonCodes = (status: number): readonly FailureCode[] =>
  [...ofToken, ...ofServer].filter(code => failures[code].status === status)

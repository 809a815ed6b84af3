import { Failure } from '../failure.ts'
import { checkedUrl, type UrlRules, urlRules } from '../media/checked-url.ts'
import type { Config } from '../models/config.ts'
import { didYouMean, nearest } from '../nearest.ts'
import { coversType, publicEventTypes } from '../store/event-types.ts'

/** Characters of a URL that a webhook may have. */
export const maxUrlLength = 2_048

/** Where webhooks may be sent: to public addresses on these ports, and where the configuration allows. */
export const webhookRules = ({ allowed_hosts, allowed_addresses }: Config['webhooks']): UrlRules =>
  urlRules({ allowed_hosts, allowed_addresses }, [80, 443])

/**
 * Throws Failure `invalid_value` that names the field, if no webhook can be sent to this URL whatever its name resolves
 * to. The addresses of a name are checked with each message.
 */
export function requireUrl(url: string, field: string, rules: UrlRules): void {
  try {
    if (url.length > maxUrlLength) throw new Error('too long')
    checkedUrl(url, undefined, rules)
  } catch (cause) {
    throw new Failure(
      'invalid_value',
      `'${field}' must be an http or https URL at a public address, on port 80 or 443, without a user name, of at most ${maxUrlLength} characters. For others see 'webhooks.allowed_addresses' in infer.yaml.`,
      { param: field, cause },
    )
  }
}

/** Throws Failure `invalid_value` for a type or pattern that no event has, with the nearest one. */
export function requireEventTypes(types: readonly string[], field: string, of = publicEventTypes): void {
  const unknown = types.find(pattern => !isPattern(pattern) || !of.some(type => coversType(pattern, type)))
  if (unknown === undefined) return
  const similar = nearest(unknown, of)
  throw new Failure(
    'invalid_value',
    `'${field}' has '${unknown.slice(0, 64)}', which is no type of event here.${similar === undefined ? '' : didYouMean([similar])} The types are: ${of.join(', ')}. 'job.*' stands for all that begin so.`,
    { param: field },
  )
}

const isPattern = (text: string): boolean => /^(\*|[a-z_.]+\.\*|[a-z_.]+)$/.test(text)

import type { z } from 'zod'
import type { ValidationDetail } from '../failure.ts'

/** Of what was sent, what may be said back: a picture inside an address is not. */
const shownText = 100
const shown = (value: unknown): unknown => {
  if (typeof value === 'string') return value.length > shownText ? `${value.slice(0, shownText)}…` : value
  if (value === null || typeof value !== 'object') return value
  const text = JSON.stringify(value)
  return text.length > shownText ? `${text.slice(0, shownText)}…` : value
}

/** `message` is the sentence that the same finding has in our own words. */
export function validationDetail(issue: z.core.$ZodIssue, value: unknown, message: string): ValidationDetail {
  const detail = (type: string, msg: string, ctx?: Record<string, unknown>): ValidationDetail => ({
    loc: ['body', ...issue.path.map(part => (typeof part === 'symbol' ? String(part) : part))],
    msg,
    type,
    ...(ctx ? { ctx } : {}),
    ...(value === undefined ? {} : { input: shown(value) }),
  })
  if (value === undefined) return detail('missing', 'Field required')
  switch (issue.code) {
    case 'invalid_type': {
      const kind = issue.expected === 'boolean' ? 'bool' : issue.expected === 'number' ? 'float' : issue.expected
      return detail(`${kind}_type`, `Input should be a valid ${article[issue.expected] ?? issue.expected}`)
    }
    case 'too_big':
    case 'too_small': {
      const big = issue.code === 'too_big'
      const bound = big ? issue.maximum : issue.minimum
      if (issue.origin === 'string')
        return detail(
          big ? 'string_too_long' : 'string_too_short',
          `String should have at ${big ? 'most' : 'least'} ${bound} characters`,
          { [big ? 'max_length' : 'min_length']: bound },
        )
      return detail(
        big ? 'less_than_equal' : 'greater_than_equal',
        `Input should be ${big ? 'less' : 'greater'} than or equal to ${bound}`,
        { [big ? 'le' : 'ge']: bound },
      )
    }
    case 'unrecognized_keys':
      return detail('extra_forbidden', 'Extra inputs are not permitted')
    case 'invalid_value': {
      const expected = issue.values.map(one => `'${String(one)}'`).join(', ')
      return detail('literal_error', `Input should be ${expected}`, { expected })
    }
    default:
      return detail('value_error', message)
  }
}

const article: Record<string, string> = { int: 'integer', boolean: 'boolean', number: 'number', record: 'dictionary' }

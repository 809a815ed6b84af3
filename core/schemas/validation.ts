import type { z } from 'zod'
import type { ValidationDetail } from '../failure.ts'

/** Longer values are cut before they are sent back: a `data:` URL may hold a whole image. */
const shownText = 100
const shown = (value: unknown): unknown => {
  if (typeof value === 'string') return value.length > shownText ? `${value.slice(0, shownText)}…` : value
  if (value === null || typeof value !== 'object') return value
  const text = JSON.stringify(value)
  return text.length > shownText ? `${text.slice(0, shownText)}…` : value
}

/** Returns an issue in the form of FastAPI. `message` is the sentence of our own API for the same issue. */
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
      const tooBig = issue.code === 'too_big'
      const bound = tooBig ? issue.maximum : issue.minimum
      if (issue.origin === 'string')
        return detail(
          tooBig ? 'string_too_long' : 'string_too_short',
          `String should have at ${tooBig ? 'most' : 'least'} ${bound} characters`,
          { [tooBig ? 'max_length' : 'min_length']: bound },
        )
      return detail(
        tooBig ? 'less_than_equal' : 'greater_than_equal',
        `Input should be ${tooBig ? 'less' : 'greater'} than or equal to ${bound}`,
        { [tooBig ? 'le' : 'ge']: bound },
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

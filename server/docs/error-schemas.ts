import { failures } from '../../core/failure.ts'
import type { Route } from '../http/request/route.ts'
import { errorCodes } from './error-codes.ts'

/** JSON Schemas of error bodies. They are plain objects, because nothing is checked against them at run time. */
export function errorSchemas(): Record<string, object> {
  const codes = Object.keys(failures) as (keyof typeof failures)[]
  const types = [...new Set(codes.map(code => failures[code].type))]
  const table = codes.map(code => `| \`${code}\` | ${failures[code].status} | ${errorCodes[code]} |`)
  const text = (description: string) => ({ type: 'string', description })
  const seconds = (description: string) => ({ type: 'integer', description })
  const Facts = {
    type: 'object',
    description: 'The error.',
    properties: {
      code: {
        type: 'string',
        enum: codes,
        description: ['What went wrong:', '', '| code | status | meaning |', '|---|---|---|', ...table].join('\n'),
      },
      message: text('What happened and what to do next, as sentences.'),
      type: { type: 'string', enum: types, description: 'Class of the error.' },
      param: {
        type: ['string', 'null'],
        description: 'Path of the field that is wrong, such as `messages[0].content`; else null.',
      },
      request_id: text('Id of the request, as in the header `x-request-id`. The log of the server has it too.'),
      retry_after: seconds('Seconds after which to try again, as in `Retry-After`. Absent if a retry does not help.'),
      details: {
        type: 'array',
        description: 'All wrong fields, if there are several.',
        items: {
          type: 'object',
          properties: {
            path: text('Path of the field.'),
            message: text('What is wrong with it.'),
            code: text('Error code of this field.'),
          },
          required: ['path', 'message', 'code'],
        },
      },
      required_scope: text('Scope that the token lacks, with `insufficient_scope`.'),
      eta_seconds: {
        type: ['integer', 'null'],
        description: 'Expected seconds until the model is loaded, with `model_warming_up`; null if unknown.',
      },
      failed_starts: seconds('How many times in a row the engine of the model failed to start.'),
      job_id: text('Id of the job that continues, with `timeout`.'),
      status_url: text('Where to read that job.'),
    },
    required: ['code', 'message', 'type', 'param', 'request_id'],
  }
  const message = text('The same as `error.message`.')
  const detail = {
    description: 'The wrong fields in the form of FastAPI, or the message.',
    anyOf: [
      { type: 'string' },
      {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            loc: {
              type: 'array',
              description: 'Path of the field, beginning with `body` or `header`.',
              items: { type: ['string', 'integer'] },
            },
            msg: text('What is wrong with it.'),
            type: text('Kind of the fault.'),
            ctx: { type: 'object', description: 'Limits that were exceeded.' },
            input: { description: 'The value that was sent, shortened.' },
          },
          required: ['loc', 'msg', 'type'],
        },
      },
    ],
  }
  const facts = { $ref: '#/components/schemas/Error' }
  return {
    Error: Facts,
    ErrorResponse: {
      type: 'object',
      description: 'An error.',
      properties: { error: facts },
      required: ['error'],
    },
    SlugErrorResponse: {
      type: 'object',
      description: "An error of the slug API: the common form, with the fields that fal's clients read.",
      properties: { error: facts, message, detail },
      required: ['error', 'message', 'detail'],
    },
    AnthropicErrorResponse: {
      type: 'object',
      description: 'An error of the Anthropic-compatible API.',
      properties: {
        type: { type: 'string', const: 'error', description: 'Always `error`.' },
        error: {
          type: 'object',
          description: 'The error.',
          properties: {
            type: text("Class of the error in Anthropic's terms, such as `invalid_request_error`."),
            message: text('What happened and what to do next, as sentences.'),
            code: text('Code of the error, as in the other parts of this API.'),
            param: { type: ['string', 'null'], description: 'The wrong field; null if there is none.' },
          },
          required: ['type', 'message', 'code', 'param'],
        },
        request_id: text('Id of the request.'),
      },
      required: ['type', 'error', 'request_id'],
    },
    FalErrorResponse: {
      type: 'object',
      description: 'An error of the fal-compatible API.',
      properties: {
        detail,
        message: text('What happened and what to do next, as sentences.'),
        error_type: text("Class of the error in fal's terms, such as `request_timeout`."),
        error: facts,
      },
      required: ['detail', 'message'],
    },
  }
}

/** Returns the name of the schema in which a route answers errors. */
export const errorSchemaOf = ({ path }: Route): string =>
  Object.entries(ofPrefix).find(([prefix]) => path.startsWith(prefix))?.[1] ?? 'ErrorResponse'

const ofPrefix = {
  '/fal/': 'FalErrorResponse',
  '/slug/': 'SlugErrorResponse',
  '/anthropic/': 'AnthropicErrorResponse',
}

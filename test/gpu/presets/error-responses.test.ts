import { expect, test } from 'vitest'
import { presets } from '../../../gpu/presets/presets.ts'

const error = (message: string, type = '') => JSON.stringify({ error: { message, type } })
const long = 'x'.repeat(3000)
const cases: [engine: string, status: number, body: string, code: string, message: RegExp][] = [
  ['gguf', 400, error('temperature must be below 2'), 'invalid_value', /refused the request: temperature must be/],
  [
    'gguf',
    400,
    JSON.stringify({
      error: { code: 'context_length_exceeded', message: 'The prompt has 9 tokens, longer than the context of 8.' },
    }),
    'context_length_exceeded',
    /9 tokens/,
  ],
  [
    'llama-server',
    400,
    error('the request exceeds the available context size', 'exceed_context_size_error'),
    'context_length_exceeded',
    /exceeds/,
  ],
  ['llama-server', 500, error('[json.exception.parse_error.101] parse error at line 1'), 'invalid_json', /parse error/],
  ['llama-server', 500, error('image input is not supported - hint: provide mmproj'), 'unsupported_parameter', /image/],
  [
    'llama-server',
    500,
    error('input is too large to process. increase the physical batch size'),
    'context_length_exceeded',
    /too large/,
  ],
  [
    'llama-server',
    501,
    error('This server does not support embeddings', 'not_supported_error'),
    'unsupported_task',
    /embeddings/,
  ],
  ['llama-server', 503, error('Loading model', 'unavailable_error'), 'model_warming_up', /Loading model/],
  [
    'vllm',
    400,
    JSON.stringify({
      object: 'error',
      message: "This model's maximum context length is 2048 tokens.",
      type: 'BadRequestError',
    }),
    'context_length_exceeded',
    /2048/,
  ],
  ['whisper-server', 400, 'Invalid request', 'worker_error', /Invalid request/],
  [
    'whisper-server',
    500,
    JSON.stringify({ error: 'failed to process audio' }),
    'worker_error',
    /failed to process audio/,
  ],
  ['vllm', 422, JSON.stringify({ detail: [{ msg: 'bad' }] }), 'invalid_value', /bad/],
  ['vllm', 500, '', 'worker_error', /answered 500\./],
  ['vllm', 501, error('no'), 'worker_error', /501/],
  ['custom', 413, 'Payload Too Large', 'payload_too_large', /Too Large/],
  ['custom', 400, '', 'invalid_value', /\(400\)/],
  ['custom', 400, '<html><head><title>x</title></head><h1>Bad\nRequest</h1>', 'invalid_value', /: Bad Request$/],
  ['custom', 400, error(long), 'invalid_value', /^.{400,600}$/],
  ['custom', 400, error('two\nlines\u0007'), 'invalid_value', /two lines$/],
  ['custom', 400, 'null', 'invalid_value', /400/],
  ['infer', 401, JSON.stringify({ error: { code: 'token_revoked' } }), 'worker_error', /has revoked or disabled/],
  ['infer', 429, JSON.stringify({ error: { code: 'quota_exceeded' } }), 'worker_error', /budget .* is used up/],
  ['infer', 429, JSON.stringify({ error: { code: 'queue_full', message: 'Full.' } }), 'no_capacity', /Full/],
  ['remote', 401, error('Incorrect API key provided'), 'worker_error', /Incorrect API key/],
  ['remote', 429, error('slow down'), 'no_capacity', /slow down/],
  ['remote', 429, error('You exceeded your current quota', 'insufficient_quota'), 'worker_error', /quota/],
]
test.each(cases)('%s answers %i %s', (engine, status, body, code, message) => {
  const failure = presets.get(engine)!.failureOf(status, body)
  expect(failure.code).toBe(code)
  // For an internal error the message of the engine goes only to the log.
  expect(`${failure.message} ${failure.engineText ?? ''}`.trim()).toMatch(message)
})

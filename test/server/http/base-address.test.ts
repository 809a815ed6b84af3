import { expect, test } from 'vitest'
import { openBaseAddresses } from '../../../server/http/base-address.ts'

const baseAddress = openBaseAddresses([
  '/std/v1/chat/completions',
  '/std/v1/completions',
  '/std/v1/models',
  '/std/v1/models/**:id',
  '/std/v1/responses',
  '/anthropic/v1/messages',
  '/anthropic/v1/messages/count_tokens',
  '/ollama/api/chat',
  '/ollama/api/tags',
  '/api/jobs',
])

test.each([
  ['/chat/completions', 'OpenAI', '/v1/chat/completions'],
  ['/std/chat/completions', 'OpenAI', '/v1/chat/completions'],
  ['/v1/v1/chat/completions', 'OpenAI', '/v1/chat/completions'],
  ['/v1/chat/completions/chat/completions', 'OpenAI', '/v1/chat/completions'],
  ['/openai/v1/chat/completions', 'OpenAI', '/v1/chat/completions'],
  ['/openai/deployments/m/chat/completions', 'OpenAI', '/v1/chat/completions'],
  ['/V1/Chat/Completions', 'OpenAI', '/v1/chat/completions'],
  ['/completions', 'OpenAI', '/v1/completions'],
  ['/responses', 'OpenAI', '/v1/responses'],
  ['/api/v1/models', 'OpenAI', '/v1/models'],
  ['/v1/messages', 'Anthropic', '/anthropic/v1/messages'],
  ['/anthropic/messages', 'Anthropic', '/anthropic/v1/messages'],
  ['/v1/messages/count_tokens', 'Anthropic', '/anthropic/v1/messages/count_tokens'],
  ['/api/chat', 'Ollama', '/ollama/api/chat'],
  ['/api/tags', 'Ollama', '/ollama/api/tags'],
])('%s names the base URL of %s', (path, client, right) => {
  expect(baseAddress(path)).toContain(`clients of ${client}`)
  expect(baseAddress(path)).toMatch(new RegExp(`: that path is ${right}\\.$`))
})

test.each(['/', '/jobs', '/api/job', '/api/jobs/models', '/models/x', '/favicon.ico', '/v1/embed'])(
  '%s is no path of another base URL',
  path => expect(baseAddress(path)).toBeUndefined(),
)

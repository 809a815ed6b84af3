import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { toneModel } from '../../server/surfaces/openai/_speech.ts'
import { pythonWith, type Requirements } from './_environment.ts'

/**
 * Scripts with the official Python clients, with only the base URL changed. Each has routes that it needs; one whose route
 * does not exist yet is skipped.
 */
const scripts: Record<string, { routes: string[]; from?: Requirements }> = {
  openai_chat: { routes: ['/std/v1/chat/completions', '/std/v1/completions', '/std/v1/embeddings', '/std/v1/models'] },
  openai_media: {
    routes: ['/std/v1/images/generations', '/std/v1/audio/speech', '/std/v1/audio/transcriptions', '/std/v1/videos'],
  },
  openai_responses: { routes: ['/std/v1/responses'] },
  openai_files: { routes: ['/std/v1/files', '/std/v1/uploads'] },
  openai_batches: { routes: ['/std/v1/batches', '/std/v1/files'] },
  openai_agents: { routes: ['/std/v1/chat/completions', '/std/v1/responses'] },
  anthropic_messages: { routes: ['/anthropic/v1/messages'] },
  ollama_client: { routes: ['/ollama/api/chat'] },
  replicate_predictions: { routes: ['/replicate/v1/predictions'] },
  cohere_rerank: { routes: ['/std/v1/rerank'] },
  cohere_v2: { routes: ['/std/v2/chat', '/std/v2/embed'] },
  groq_chat: { routes: ['/std/v1/chat/completions'] },
  voyage_rerank: { routes: ['/std/v1/rerank', '/std/v1/embeddings'] },
  instructor_models: { routes: ['/std/v1/chat/completions'] },
  langchain_chat: { routes: ['/std/v1/chat/completions'] },
  langchain_responses: { routes: ['/std/v1/responses'] },
  litellm_openai: { routes: ['/std/v1/chat/completions'], from: 'requirements-openai-2' },
  llama_index_chat: { routes: ['/std/v1/chat/completions'], from: 'requirements-openai-2' },
}

/** Routes without which a test fails instead of being skipped. */
const required = [...new Set(Object.values(scripts).flatMap(script => script.routes))]

let app: TestApp
let routes: string[]
beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('fake', [], { concurrency: 4 }),
      fakeModel('far', [], { tasks: ['std/audio-transcription', 'std/audio-translation'] }),
      fakeModel('film', [], { tasks: ['slug/text-to-video'] }),
      toneModel(),
      ...['drawn', 'acme/drawn'].map(id => ({
        id,
        engine: 'demo',
        tasks: ['slug/text-to-image', 'slug/image-to-image', 'slug/inpainting'],
        args: ['--step-ms', '0'],
      })),
    ],
  })
  const { paths } = (await (await app.fetch('/openapi.json')).json()) as { paths: Record<string, unknown> }
  routes = Object.keys(paths)
})
afterAll(() => app[Symbol.asyncDispose]())

test('every script is listed, and no other', () => {
  const found = readdirSync(import.meta.dirname).filter(name => /^[a-z].*\.py$/.test(name))
  expect(found.sort()).toEqual(
    Object.keys(scripts)
      .map(name => `${name}.py`)
      .sort(),
  )
})

test('the routes that must exist do', () => {
  expect(required.filter(path => !routes.includes(path))).toEqual([])
})

describe.concurrent('clients', () => {
  test.for(Object.keys(scripts))('%s', async (name, { skip, expect }) => {
    const { routes: needed, from = 'requirements' } = scripts[name]!
    const absent = needed.filter(path => !routes.includes(path))
    if (absent.length > 0) return skip(`infer has no ${absent.join(', ')}`)
    const environment = await environmentOf(from)
    if ('reason' in environment) return skip(`The Python packages cannot be had here: ${environment.reason}`)
    const checks = await runScript(environment.python, name)
    expect(checks.filter(({ error }) => error !== null).map(({ check, error }) => `${check}: ${error}`)).toEqual([])
    expect(checks.length).toBeGreaterThan(0)
  })
})

const environments = new Map<Requirements, ReturnType<typeof pythonWith>>()

/** One after the other, because both need the installer. */
function environmentOf(requirements: Requirements): ReturnType<typeof pythonWith> {
  const before = Promise.allSettled(environments.values())
  const found = environments.get(requirements) ?? before.then(() => pythonWith(requirements))
  environments.set(requirements, found)
  return found
}

interface Check {
  check: string
  /** The traceback of Python, or null. */
  error: string | null
}

async function runScript(python: string, name: string): Promise<Check[]> {
  const child = spawn(python, [join(import.meta.dirname, `${name}.py`)], {
    env: {
      PATH: process.env.PATH,
      HOME: app.dataDir,
      INFER_URL: app.url,
      INFER_TOKEN: app.secret,
      // Or it asks GitHub for a list of prices when it is imported.
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
    },
    timeout: 150_000,
  })
  const [out, err, [code, signal]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const checks = out.split('\n').flatMap(line => (line.startsWith('{"check"') ? [JSON.parse(line) as Check] : []))
  return code === 0 ? checks : [...checks, { check: `${name}.py`, error: err || `ended by ${signal}` }]
}

import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { taskNamed } from '../../../core/tasks/registry.ts'
import { findProgram } from '../../../gpu/sandbox/program.ts'
import {
  languages,
  type SampleRequest,
  sampleOf,
  samplePath,
} from '../../../server/console/app/pages/playground/samples.ts'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { hasFfmpeg } from '../../_ffmpeg.ts'
import { toneModel } from '../surfaces/openai/_speech.ts'

/** The code samples of the playground, each executed as a person would. */
let app: TestApp
beforeAll(async () => {
  const texts = ['std/chat-completion', 'std/completion', 'std/embeddings', 'std/rerank', 'std/score', 'std/moderation']
  app = await startApp({
    models: [
      fakeModel('text', [], { tasks: texts }),
      fakeModel('painter', [], { tasks: ['slug/text-to-image', 'slug/text-to-video'], concurrency: 1 }),
      toneModel(),
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

/** What a shell, Python and YAML each could misread. */
const hostile = `It's "quoted", $HOME \`id\` \${nodes.a} \\n {x} 100% 'done'\nnext line — ünïcode 🦊`
const messages = [{ role: 'user', content: hostile }]

const requests: [Omit<SampleRequest, 'origin'>, answer: RegExp][] = [
  [{ task: 'std/chat-completion', model: 'text', inputs: { messages, temperature: 0 } }, /"choices"/],
  [{ task: 'std/completion', model: 'text', inputs: { prompt: hostile, max_tokens: 4 } }, /"text"/],
  [{ task: 'std/embeddings', model: 'text', inputs: { input: [hostile, 'b'] } }, /"embedding"/],
  [{ task: 'std/rerank', model: 'text', inputs: { query: hostile, documents: ['a', hostile] } }, /"relevance_score"/],
  [{ task: 'std/score', model: 'text', inputs: { text_1: hostile, text_2: ['b'] } }, /"score"/],
  [{ task: 'std/moderation', model: 'text', inputs: { input: hostile } }, /"flagged"/],
  [
    { task: 'slug/text-to-image', model: 'painter', inputs: { prompt: hostile, width: 64, height: 64, seed: 3 } },
    /"seed_used": ?3/,
  ],
  [
    {
      task: 'slug/text-to-video',
      model: 'painter',
      inputs: { prompt: hostile, num_frames: 4, fps: 4, aspect_ratio: '16:9' },
      formats: { slug: 'painter/text-to-video', ratios: ['9:16', '1:1'] },
    },
    /"aspect_ratio": ?"1:1"|text-to-video-1-1/,
  ],
  [{ task: 'std/audio-speech', model: 'tones', inputs: { input: hostile, response_format: 'wav' } }, /"audio_url"/],
]

const run = promisify(execFile)
const programs = {
  curl: (code: string) => run('bash', ['-c', code], { env: environment() }),
  python: (code: string) => run('python3', [written('sample.py', code)], { env: environment() }),
  javascript: (code: string) => run(process.execPath, [written('sample.mjs', code)], { env: environment() }),
  workflow: async (code: string) => {
    const { dag } = parse(code) as { dag: object }
    const begun = await app.fetch('/api/workflows/run', { body: { dag, input_params: {} } })
    const answer = (await begun.json()) as { execution: { id: string } }
    expect(begun.status, JSON.stringify(answer)).toBe(202)
    const { execution } = answer
    const read = async () => (await app.fetch(`/api/workflow-executions/${execution.id}`)).text()
    await expect.poll(read).toMatch(/"status":"(completed|failed)","/)
    return { stdout: await read() }
  },
}
const environment = () => ({ PATH: process.env.PATH, INFER_TOKEN: app.secret })
const written = (name: string, code: string): string => {
  const path = join(app.dataDir, name)
  writeFileSync(path, code)
  return path
}
const needs = { curl: 'curl', python: 'python3', javascript: 'node', workflow: undefined }
const isInstalled = (program: string | undefined): boolean =>
  program === undefined || program === 'node' || findProgram(program, process.env.PATH ?? '') !== undefined

describe.each(languages)('%s', language => {
  test.skipIf(!isInstalled(needs[language])).each(requests.filter(([{ formats }]) => hasFfmpeg || !formats))(
    'the sample of $task runs as it is',
    async (request, answer) => {
      const { stdout } = await programs[language](
        sampleOf(language, { origin: app.url, path: samplePath(taskNamed(request.task)!), ...request }),
      )
      expect(stdout).toMatch(answer)
      expect(stdout).not.toContain('"status":"failed"')
      if (request.task !== 'slug/text-to-image') return
      const { jobs } = (await (await app.fetch(`/api/jobs?task=${request.task}&limit=1`)).json()) as {
        jobs: { id: string }[]
      }
      const job = (await (await app.fetch(`/api/jobs/${jobs[0]!.id}`)).json()) as { inputs: { prompt: string } }
      expect(job.inputs.prompt).toBe(hostile)
    },
  )
})

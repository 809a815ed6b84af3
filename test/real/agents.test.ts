import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'
import { openToolUser } from '../clients/_tool-user.ts'
import type { ScriptedEngine } from '../server/_scripted-engine.ts'
import { temporaryFolder } from './_engine.ts'

/**
 * Codex, Claude Code and opencode themselves, each in a home of its own, with a scripted engine behind: see README.md of
 * this folder.
 */
const programs = join(process.env.INFER_REAL_AGENTS ?? '', 'node_modules', '.bin')
const word = 'heliotrope'

interface Agent {
  program: string
  /** Writes its configuration into its home. */
  configure?: (home: string) => void
  environment: () => Record<string, string>
  first: (prompt: string) => string[]
  next: (prompt: string) => string[]
}

let engine: ScriptedEngine
let app: TestApp
const folder = temporaryFolder()
beforeAll(async () => {
  engine = await openToolUser()
  app = await startApp({ models: [engine.model('agent', { context_length: 200_000 })] })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const codexFlags = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox']
const agents: Agent[] = [
  {
    program: 'codex',
    configure(home) {
      mkdirSync(join(home, '.codex'))
      writeFileSync(
        join(home, '.codex', 'config.toml'),
        [
          'model = "agent"',
          'model_provider = "infer"',
          'model_context_window = 200000',
          '[model_providers.infer]',
          'name = "infer"',
          `base_url = "${app.url}/std/v1"`,
          'env_key = "INFER_TOKEN"',
          'wire_api = "responses"',
        ].join('\n'),
      )
    },
    environment: () => ({ INFER_TOKEN: app.secret }),
    first: prompt => ['exec', ...codexFlags, prompt],
    next: prompt => ['exec', ...codexFlags, 'resume', '--last', prompt],
  },
  {
    program: 'claude',
    environment: () => ({
      ANTHROPIC_BASE_URL: `${app.url}/anthropic`,
      ANTHROPIC_AUTH_TOKEN: app.secret,
      ANTHROPIC_MODEL: 'agent',
      ANTHROPIC_DEFAULT_HAIKU_MODEL: 'agent',
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: '200000',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
    first: prompt => ['-p', prompt, '--allowedTools', 'Read'],
    next: prompt => ['-c', '-p', prompt, '--allowedTools', 'Read'],
  },
  {
    program: 'opencode',
    configure(home) {
      const options = { baseURL: `${app.url}/std/v1`, apiKey: '{env:INFER_TOKEN}' }
      const models = { agent: { name: 'agent', limit: { context: 200_000, output: 8_192 } } }
      mkdirSync(join(home, '.config', 'opencode'), { recursive: true })
      writeFileSync(
        join(home, '.config', 'opencode', 'opencode.json'),
        JSON.stringify({
          provider: { infer: { npm: '@ai-sdk/openai-compatible', name: 'infer', options, models } },
          model: 'infer/agent',
          small_model: 'infer/agent',
          autoupdate: false,
          share: 'disabled',
        }),
      )
    },
    environment: () => ({ INFER_TOKEN: app.secret }),
    first: prompt => ['run', prompt],
    next: prompt => ['run', '-c', prompt],
  },
]

describe.each(agents)('$program', ({ program, configure, environment, first, next }) => {
  const binary = join(programs, program)

  test.skipIf(!existsSync(binary))(
    'says hello, goes on, and reads a file by its tool',
    async () => {
      const [home, work] = ['home', 'work'].map(name => join(folder(), `${program}-${name}`)) as [string, string]
      for (const path of [home, work]) mkdirSync(path)
      writeFileSync(join(work, 'notes.txt'), `The word of the day is ${word}.\n`)
      configure?.(home)
      const run = async (args: string[]): Promise<string> => {
        const env = { PATH: process.env.PATH, HOME: home, ...environment() }
        const { stdout } = await execa(binary, args, {
          cwd: work,
          env,
          extendEnv: false,
          stdin: 'ignore',
          timeout: 120_000,
        })
        return stdout
      }
      expect(await run(first('hi'))).toContain('Hello, turn 1.')
      expect(await run(next('hi again'))).toContain('Hello, turn 2.')
      expect(await run(first(`Read the file ${join(work, 'notes.txt')}`))).toContain(word)
    },
    400_000,
  )
})

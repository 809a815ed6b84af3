import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { waitingText } from '../../../cli/models/load.ts'
import { taskNamed } from '../../../core/tasks/registry.ts'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { type Ended, infer, json, temporaryFolder } from '../_infer.ts'
import { answer, fakeServer } from '../_server.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('owner/sound', ['--id', 'it is'], { env: { SECRET: 'hunter2' }, idle_ttl: '90s' }),
      fakeModel('broken', ['--exit', '3']),
      fakeModel('off', [], { enabled: false }),
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())
const model = (...args: string[]): Promise<Ended> =>
  infer(['model', ...args], { env: { INFER_URL: app.url, INFER_TOKEN: app.secret } })

describe('against a running server', () => {
  test('load waits until the model is warm, show prints the engine, unload waits until it has stopped', async () => {
    const loaded = await model('load', 'owner/sound')
    expect([loaded.exitCode, loaded.stdout]).toEqual([0, expect.stringMatching(/^'owner\/sound' is warm/) as string])

    const shown = await model('show', 'owner/sound')
    expect(shown.stdout).toMatch(/^owner\/sound +warm$/m)
    expect(shown.stdout).toMatch(/^wkr_\S+ +ready on cpu, 16\.0 MiB, 0 of \d+ slots busy, for \d+ s, process \d+$/m)
    expect(shown.stdout).toContain("--id 'it is'")
    expect(shown.stdout).toMatch(/^idle_ttl +90s$/m)
    expect(shown.stdout).toMatch(/^memory +16\.0MiB$/m)
    expect(shown.stdout).not.toContain('hunter2')
    expect(json(await model('show', 'owner/sound', '--json'))).toMatchObject({
      id: 'owner/sound',
      settings: { idle_ttl: 90_000, env: { SECRET: '***' } },
      status: { status: 'warm' },
      engines: [{ state: 'ready' }],
    })

    expect((await model('plan', 'owner/sound')).stdout).toMatch(/^owner\/sound  ready\n'owner\/sound' is loaded/)
    const { stdout } = await model('plan', 'broken')
    expect(stdout).toMatch(/^broken  load\nA request loads 'broken' on cpu/)
    expect(stdout).toMatch(/^ {2}now {3}A·+\n {2}then {2}A\+·+\n {2}A {2}owner\/sound, 16\.0 MiB\n {2}\+ {2}broken, /m)
    expect(json(await model('plan', 'broken', '--json'))).toMatchObject({ object: 'model.plan', status: 'load' })
    expect((await model('plan', 'none')).stderr).toContain("'none' does not exist here")

    expect(json(await model('load', 'owner/sound', '--json'))).toMatchObject({
      status: 'warm',
      load_seconds: expect.any(Number) as number,
    })
    const unloaded = await model('unload', 'owner/sound')
    expect([unloaded.exitCode, unloaded.stdout]).toEqual([0, "'owner/sound' is unloaded.\n"])
    expect(json(await model('unload', 'owner/sound', '--json'))).toMatchObject({ status: 'cold' })
    expect((await model('unload', 'owner/sound')).stdout).toBe("'owner/sound' was not loaded.\n")
  })

  test('a model that cannot be loaded exits with 1 and the reason', async () => {
    const ended = await model('load', 'broken')
    expect([ended.exitCode, ended.stdout]).toEqual([1, ''])
    expect(ended.stderr).toMatch(/'broken' cannot be started: .*out of memory/)
    expect((await model('load', 'none')).stderr).toContain("'none' does not exist here")
    expect((await model('load', 'off')).stderr).toContain('enabled: true')
  })

  test('test runs every task, measures it, and exits with 0 if all succeed', async () => {
    const ended = await model('test', 'owner/sound')
    const rows = ended.stdout.trimEnd().split('\n')
    expect(rows[0]).toMatch(/^model +task +result +latency +first token +tokens\/s +memory +note$/)
    expect(rows.slice(1).map(row => row.split(/ {2,}/).slice(1, 3))).toEqual([
      ['std/chat-completion', 'passed'],
      ['std/completion', 'passed'],
      ['std/embeddings', 'passed'],
      ['std/rerank', 'passed'],
      ['std/score', 'passed'],
    ])
    expect(rows[1]).toMatch(/\d+ ms +\d+ ms .*16\.0 MiB/)
    expect(ended.exitCode).toBe(0)
  })

  test('without an id every model is tested; failures are printed, and the exit code is 1', async () => {
    const ended = await model('test', '--json')
    expect(ended.exitCode).toBe(1)
    const report = json(ended) as { passed: boolean; models: { model_id: string; tests: object[] }[] }
    expect(report.passed).toBe(false)
    expect(report.models.map(({ model_id }) => model_id)).toEqual(['owner/sound', 'broken'])
    expect(report.models[0]).toMatchObject({
      load_seconds: expect.any(Number) as number,
      memory_bytes: 16 << 20,
      tests: [
        { task: 'std/chat-completion', result: 'passed', reason: null, latency_ms: expect.any(Number) as number },
        { task: 'std/completion', result: 'passed' },
        {},
        {},
        {},
      ],
    })
    expect(report.models[1]!.tests[0]).toMatchObject({
      result: 'failed',
      reason: expect.stringContaining('out of memory') as string,
      latency_ms: null,
    })
  })
})

describe('the check of an answer', () => {
  const data = (...vectors: number[][]) => ({ data: vectors.map(embedding => ({ embedding })) })
  const results = (...pairs: [number, number][]) => ({
    results: pairs.map(([index, relevance_score]) => ({ index, relevance_score })),
  })
  const streamed = { text: 'Hi', finished: true, completionTokens: 2 }

  test.each<[string, string, unknown, string | undefined]>([
    ['sound', 'std/chat-completion', streamed, undefined],
    ['silent', 'std/chat-completion', { ...streamed, text: ' \n' }, 'is empty'],
    ['without an end', 'std/completion', { ...streamed, finished: false }, 'no finish_reason'],
    ['without usage', 'std/completion', { ...streamed, completionTokens: undefined }, 'usage'],
    ['with an empty usage', 'std/completion', { ...streamed, completionTokens: 0 }, 'no completion tokens'],
    ['sound', 'std/embeddings', data([1, 0], [0, 1], [1, 0]), undefined],
    ['too few', 'std/embeddings', data([1, 0]), '1 vectors for three'],
    ['of different lengths', 'std/embeddings', data([1, 0], [0, 1, 0], [1, 0]), 'different lengths'],
    ['zero', 'std/embeddings', data([0, 0], [0, 1], [0, 0]), 'zero'],
    ['unsteady', 'std/embeddings', data([1, 0], [0, 1], [0, 1]), 'two different vectors'],
    ['all the same', 'std/embeddings', data([1, 0], [1, 0], [1, 0]), 'Different texts'],
    ['sound', 'std/rerank', results([0, 0.9], [2, 0.2], [1, 0.1]), undefined],
    ['incomplete', 'std/rerank', results([0, 0.9]), '1 of 3'],
    ['not sorted', 'std/rerank', results([0, 0.1], [1, 0.5], [2, 0.2]), 'not sorted'],
    ['wrong', 'std/rerank', results([1, 0.9], [0, 0.5], [2, 0.2]), 'answers the question'],
    ['sound', 'std/score', { data: [{ score: 1 }, { score: 0 }, { score: 0.5 }] }, undefined],
    ['wrong', 'std/score', { data: [{ score: 0 }, { score: 1 }, { score: 0.5 }] }, 'highest'],
  ])('%s: %s', (_, task, value, fault) => {
    const found = taskNamed(task)!.test!.fault(value)
    if (fault === undefined) expect(found).toBeUndefined()
    else expect(found).toContain(fault)
  })

  const events = (...chunks: (object | string)[]) =>
    [...chunks.map(chunk => (typeof chunk === 'string' ? chunk : JSON.stringify(chunk))), '[DONE]']
      .map(text => `data: ${text}\n\n`)
      .join('')
  const end = { choices: [{ delta: {}, finish_reason: 'stop' }], usage: { completion_tokens: 2 } }
  test.each<[string, string, string | object, 'passed' | 'failed' | 'untested', string | null]>([
    [
      'reasoning counts as output',
      'std/chat-completion',
      events({ choices: [{ delta: { reasoning_content: 'Hm' } }] }, end),
      'passed',
      null,
    ],
    [
      'an error in the stream',
      'std/chat-completion',
      events(end, { error: { message: 'Out of memory.' } }),
      'failed',
      'Out of memory.',
    ],
    ['a stream of another format', 'std/chat-completion', events('hello'), 'failed', 'does not have the form'],
    ['an answer of another format', 'std/embeddings', { hello: 1 }, 'failed', 'does not have the form'],
    ['an unknown task', 'std/later', {}, 'untested', 'does not know the task'],
  ])('%s', async (_, task, value, result, reason) => {
    const status = { model_id: 'm', status: 'warm', tasks: [task] }
    const { url } = await fakeServer(({ path }, response) => {
      if (path.startsWith('/api/models/m/load')) return answer(response, 200, status)
      if (path === '/api/models/m') return answer(response, 200, { id: 'm', settings: {}, status, engines: [] })
      if (typeof value !== 'string') return answer(response, 200, value)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(value)
    })
    const ended = await infer(['model', 'test', 'm', '--json'], { env: { INFER_URL: url, INFER_TOKEN: 'sk-x' } })
    const { models } = json(ended) as { models: { tests: { result: string; reason: string | null }[] }[] }
    expect(models[0]!.tests[0]).toMatchObject({
      result,
      reason: reason === null ? null : (expect.stringContaining(reason) as string),
    })
    expect(ended.exitCode).toBe(result === 'failed' ? 1 : 0)
  })
})

test.each([
  [{ model_id: 'm', status: 'loading', tasks: [], eta_seconds: 40 }, 12, "Loading 'm' 12 s, about 40 s left"],
  [{ model_id: 'm', status: 'loading', tasks: [] }, undefined, "Loading 'm'"],
  [
    {
      model_id: 'm',
      status: 'cold',
      tasks: [],
      reason: "'m' waits for the memory of 'n'.",
    },
    undefined,
    "Waiting to load 'm': 'm' waits for the memory of 'n'.",
  ],
])('%o after %s s is %s', (status, seconds, text) => {
  expect(waitingText(status, seconds)).toBe(text)
})

describe('remove', () => {
  const yaml = (source: string) =>
    `# mine\nmodels:\n  - id: a # first\n    source: ${source}\n  # about b\n  - id: b\n    source: /elsewhere/b.gguf\n`
  function home(): { dataDir: string; config: string; own: string } {
    const dataDir = temporaryFolder()
    const own = join(dataDir, 'models', 'a.gguf')
    mkdirSync(join(dataDir, 'models'))
    writeFileSync(own, 'weights')
    const config = join(dataDir, 'infer.yaml')
    writeFileSync(config, yaml(own))
    return { dataDir, config, own }
  }
  const remove = (dataDir: string, ...args: string[]) => infer(['model', 'remove', ...args, '--data-dir', dataDir])

  test('the entry is removed, the comments and the file are kept', async () => {
    const { dataDir, config, own } = home()
    const ended = await remove(dataDir, 'a', '--yes')
    expect([ended.exitCode, ended.stdout]).toEqual([0, `Removed 'a' from ${config}.\n`])
    expect(ended.stderr).toContain(`Its files stay: ${own}`)
    expect(readFileSync(config, 'utf8')).toBe(
      '# mine\nmodels:\n  # about b\n  - id: b\n    source: /elsewhere/b.gguf\n',
    )
    expect(existsSync(own)).toBe(true)
  })

  test('with --delete-files the files of the model are deleted too', async () => {
    const { dataDir, own } = home()
    expect(json(await remove(dataDir, 'a', '--yes', '--delete-files', '--json'))).toMatchObject({ deleted: [own] })
    expect(existsSync(own)).toBe(false)
  })

  test.each(['outside of the folder', 'a link that leads out of it', 'used by another model'])(
    'a file is never deleted that is %s',
    async how => {
      const { dataDir, config, own } = home()
      const outside = join(temporaryFolder(), 'precious.gguf')
      writeFileSync(outside, 'precious')
      if (how === 'outside of the folder') writeFileSync(config, yaml(outside))
      else if (how === 'used by another model') writeFileSync(config, yaml(own).replace('/elsewhere/b.gguf', own))
      else {
        symlinkSync(outside, join(dataDir, 'models', 'link.gguf'))
        writeFileSync(config, yaml(join(dataDir, 'models', 'link.gguf')))
      }
      const ended = await remove(dataDir, 'a', '--yes', '--delete-files', '--json')
      expect(json(ended)).toMatchObject({ model_id: 'a', deleted: [] })
      expect([existsSync(outside), existsSync(own)]).toEqual([true, true])
    },
  )

  test('all parts of a split file are deleted', async () => {
    const { dataDir, config } = home()
    const parts = [1, 2, 3].map(part => join(dataDir, 'models', `big-0000${part}-of-00003.gguf`))
    for (const path of [...parts, join(dataDir, 'models', 'big-00001-of-00002.gguf')]) writeFileSync(path, 'x')
    writeFileSync(config, yaml(parts[0]!))
    const { deleted } = json(await remove(dataDir, 'a', '--yes', '--delete-files', '--json')) as { deleted: string[] }
    expect(deleted.toSorted((a, b) => a.localeCompare(b))).toEqual(parts)
    expect(existsSync(join(dataDir, 'models', 'big-00001-of-00002.gguf'))).toBe(true)
  })

  test('nothing changes where no question can be asked, or without such a model', async () => {
    const { dataDir, config, own } = home()
    const unasked = await remove(dataDir, 'a')
    expect([unasked.exitCode, unasked.stderr]).toEqual([64, expect.stringContaining('--yes') as string])
    const unknown = await remove(dataDir, 'c', '--yes')
    expect([unknown.exitCode, unknown.stderr]).toEqual([1, expect.stringContaining("no model 'c'") as string])
    expect(readFileSync(config, 'utf8')).toBe(yaml(own))
    const toy = await infer(['model', 'remove', 'infer/tiny-chat', '--yes', '--data-dir', temporaryFolder()])
    expect([toy.exitCode, toy.stderr]).toEqual([1, expect.stringContaining('ships with infer') as string])
  })
})

describe.skipIf(!hasTerminal)('in a terminal', () => {
  test('load prints its progress on one line', async () => {
    await using slow = await startApp({ models: [fakeModel('slow', ['--ready-after', '3000'])] })
    const terminal = inTerminal(['model', 'load', 'slow'], { INFER_URL: slow.url, INFER_TOKEN: slow.secret })
    await terminal.sees("Loading 'slow'")
    await terminal.sees("'slow' is warm after")
    expect(await terminal.ends()).toBe(0)
  })

  test('Ctrl-C ends the wait with 130, not the load', async () => {
    await using slow = await startApp({ models: [fakeModel('slow', ['--hang'])] })
    const terminal = inTerminal(['model', 'load', 'slow'], { INFER_URL: slow.url, INFER_TOKEN: slow.secret })
    await terminal.sees("Loading 'slow'")
    terminal.types('\u0003')
    expect(await terminal.ends()).toBe(130)
    expect(await (await slow.fetch('/api/models/slow')).json()).toMatchObject({ status: { status: 'loading' } })
  })

  test('remove asks twice: about the entry and about the file', async () => {
    const dataDir = temporaryFolder()
    const own = join(dataDir, 'models', 'a.gguf')
    mkdirSync(join(dataDir, 'models'))
    writeFileSync(own, 'weights')
    const config = join(dataDir, 'infer.yaml')
    const text = `models:\n  - id: a\n    source: ${own}\n`
    writeFileSync(config, text)
    const refusing = inTerminal(['model', 'remove', 'a', '--data-dir', dataDir])
    await refusing.sees('[y/N]')
    refusing.types('\n')
    await refusing.sees('Nothing was changed.')
    expect([await refusing.ends(), readFileSync(config, 'utf8')]).toEqual([0, text])

    const agreeing = inTerminal(['model', 'remove', 'a', '--data-dir', dataDir])
    await agreeing.sees("Remove 'a' from")
    agreeing.types('y\n')
    await agreeing.sees(`Also delete ${own} (7 B)?`)
    agreeing.types('y\n')
    await agreeing.sees('Deleted 7 B.')
    expect(await agreeing.ends()).toBe(0)
    expect([readFileSync(config, 'utf8'), existsSync(own)]).toEqual(['models: []\n', false])
  })
})

test('without a server show prints the configuration', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(join(dataDir, 'infer.yaml'), 'models:\n  - id: mine\n    source: /m.gguf\n    env: {KEY: hunter2}\n')
  const ended = await infer(['model', 'show', 'mine', '--data-dir', dataDir])
  expect(ended.stdout).toMatch(/^mine +configured$/m)
  expect(ended.stdout).toMatch(/^source +\/m\.gguf$/m)
  expect(ended.stdout).not.toContain('hunter2')
  expect((await infer(['model', 'show', 'other', '--data-dir', dataDir])).stderr).toContain("no model 'other'")
})

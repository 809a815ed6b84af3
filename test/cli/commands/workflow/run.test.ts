import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { describe, expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { fakeModel, startApp } from '../../../_app.ts'
import { heardInWav } from '../../../server/surfaces/openai/_speech.ts'
import { entry, infer, json, temporaryFolder } from '../../_infer.ts'
import { event, streams } from '../../_jobs.ts'
import { answer, fakeServer } from '../../_server.ts'
import { hasTerminal, inTerminal } from '../../_terminal.ts'

const fixtures = join(import.meta.dirname, '../../../fixtures/workflows')
const hasFfmpeg = spawnSync('ffprobe', ['-version']).status === 0
const toy = 'every token of it ran through llama.cpp on your machine.'

/** A data directory without a running server. */
function emptyDirectory(models: object[] = []): string {
  const dataDir = temporaryFolder()
  // A small disk must not fail a test.
  writeFileSync(join(dataDir, 'infer.yaml'), stringify({ models, limits: { min_free_disk: 0, ballast: 0 } }))
  return dataDir
}

describe('the examples run unchanged, without a server', () => {
  async function example(name: string, ...more: string[]) {
    const [dataDir, folder] = [emptyDirectory(), temporaryFolder()]
    const args = ['workflow', 'run', join(fixtures, name), '--data-dir', dataDir, '--out', folder, ...more]
    const ended = await infer(args)
    expect([ended.exitCode, ended.stderr]).toEqual([
      0,
      expect.stringContaining('so this command starts one until the execution has ended'),
    ])
    // The server has stopped again, and the next command reports so.
    expect(existsSync(join(dataDir, 'server.json'))).toBe(false)
    return { ...ended, folder, lines: ended.stdout.trimEnd().split('\n') }
  }

  test.skipIf(!hasFfmpeg)('a sentence, an image of it, and a video of the image', async () => {
    const { lines, folder, stderr } = await example('story.yaml', '--param', 'seed=5')
    expect(lines).toEqual([
      'write:',
      expect.stringContaining(toy),
      'paint:',
      join(folder, 'paint-5.png'),
      'move:',
      join(folder, 'move-5.mp4'),
    ])
    const picture = await sharp(join(folder, 'paint-5.png')).metadata()
    expect([picture.format, picture.width, picture.height]).toEqual(['png', 320, 192])
    const probe = [
      '-v',
      'error',
      '-count_frames',
      '-show_entries',
      'stream=width,height,nb_read_frames',
      '-of',
      'csv=p=0',
    ]
    const { stdout } = spawnSync('ffprobe', [...probe, join(folder, 'move-5.mp4')], { encoding: 'utf8' })
    expect(stdout.trim().split('\n')[0]).toBe('320,192,8')
    expect(stderr).toMatch(/\nwrite: completed, .*\npaint: waiting/s)
  })

  test('a text, synthesized, transcribed again, and answered', async () => {
    const { lines, folder, stderr } = await example('listen.yaml', '--param', 'text=Two cats.')
    expect(lines).toEqual([
      'say:',
      join(folder, 'say.wav'),
      'hear:',
      'Two cats.',
      'answer:',
      expect.stringContaining(toy),
    ])
    expect(stderr).toMatch(/\nhear: completed/)
  })

  test.skipIf(!hasFfmpeg)('a sentence, synthesized, and a video with that audio', async () => {
    const { lines, folder } = await example('narrate.yaml', '--param', 'voice=bass')
    const [, text = '', , sound = '', , video = ''] = lines
    expect(text).toContain(toy)
    expect([sound, video]).toEqual([join(folder, 'speak.wav'), join(folder, 'show-1.mp4')])
    expect(heardInWav(readFileSync(sound))).toBe(text)
    const probe = ['-v', 'error', '-show_entries', 'stream=codec_type,duration', '-of', 'csv=p=0', video]
    const streams = spawnSync('ffprobe', probe, { encoding: 'utf8' }).stdout.trim().split('\n')
    expect(streams.map(line => line.split(',')[0])).toEqual(['video', 'audio'])
    // A byte takes two chords of 15 ms at this speed, and the marks around it take 20 chords.
    expect(Math.abs(Number(streams[1]!.split(',')[1]) - (2 * text.length + 20) * 0.015)).toBeLessThan(0.6)
  })

  test('documents ranked by relevance, and a summary of the best', async () => {
    const { lines } = await example('digest.yaml')
    expect(lines).toEqual([
      'rank:',
      'A cat jumps over the wall, and another cat looks on.',
      'sum_up:',
      expect.stringContaining(toy),
    ])
  })

  test('ten at once, joined into one; --json prints the record', async () => {
    const { stdout } = await example('parallel.yaml', '--json')
    const execution = JSON.parse(stdout) as {
      status: string
      progress: { completed: number }
      outputs: Record<string, { result: { choices: { message: { content: string } }[] } }>
    }
    expect([execution.status, execution.progress.completed]).toEqual(['completed', 11])
    expect(execution.outputs.join!.result.choices[0]!.message.content).toContain('infer')
  })
})

const chat = (content: string, more: object = {}) => ({
  model_id: 'fake',
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content }] },
  ...more,
})
const said = (node: string) => `\${nodes.${node}.result.choices[0].message.content}`

async function setUp() {
  const app = await startApp({ models: [fakeModel('fake')] })
  onTestFinished(() => app[Symbol.asyncDispose]())
  const folder = temporaryFolder()
  const env = { INFER_URL: app.url, INFER_TOKEN: app.secret }
  const write = (workflow: object, name = 'flow.yaml') => {
    const path = join(folder, name)
    writeFileSync(path, name.endsWith('.json') ? JSON.stringify(workflow) : stringify(workflow))
    return path
  }
  return { app, folder, env, write, run: (...args: string[]) => infer(args, { env }) }
}

test('a graph alone, in a pipe: one plain line for each change, outputs on standard output', async () => {
  const { run, write } = await setUp()
  const path = write(
    { nodes: { a: chat('one'), b: chat(`two ${said('a')}`) }, edges: [{ from: 'a', to: 'b' }] },
    'f.json',
  )
  const { exitCode, stdout, stderr } = await run('workflow', 'run', path, '--node', 'b')
  expect([exitCode, stdout.split('\n').length]).toEqual([0, 2])
  const lines = stderr.trimEnd().split('\n')
  expect(lines[0]).toMatch(/^f: exec_\w{26}$/)
  expect(lines.filter(line => /^[ab]: completed/.test(line)).map(line => line[0])).toEqual(['a', 'b'])
  expect(stderr).not.toContain('\u001b')
})

test('an invalid workflow is reported node by node, with exit code 65; oddities are warnings', async () => {
  const { run, write } = await setUp()
  const path = write({
    nodes: { a: chat('x', { model_id: 'ghost' }), b: chat(said('nobody')), c: chat(`x ${said('a')}`, { colour: 1 }) },
    edges: [],
  })
  const { exitCode, stdout, stderr } = await run('workflow', 'run', path)
  expect([exitCode, stdout]).toEqual([65, ''])
  expect(stderr).toContain('The workflow cannot run: 2 errors.')
  expect(stderr).toMatch(/:\d+:\d+: Node 'a': the model 'ghost' does not exist here\./)
  expect(stderr).toMatch(/:\d+:\d+: .*there is no node 'nobody'/)
  expect(stderr).toMatch(/Warning: .*:\d+:\d+: Node 'c': 'colour' has no meaning here\./)
})

test.each<[name: string, args: string[], exitCode: number, said: string]>([
  [
    'a parameter is missing',
    [],
    64,
    "The workflow needs the parameters 'word', 'n'. Give it: --param word=… --param n=…",
  ],
  ['a type does not match', ['--param', 'word=x', '--param', 'n=many'], 64, "The parameter 'n' is of type string"],
  ['a parameter is given twice', ['--param', 'n=1', '--param', 'n=2'], 64, "'n' is given twice."],
  ['a parameter is unknown', ['--param', 'wrd=x'], 64, "The workflow has no parameter 'wrd'."],
  ['the time for it is none', ['--timeout', '10ms'], 64, 'The timeout of an execution is 1s to 24h.'],
  ['a file is missing', ['--param', 'word=@/nonexistent/x', '--param', 'n=1'], 74, 'of the parameter'],
])('%s', async (_, args, exitCode, text) => {
  const folder = temporaryFolder()
  const path = join(folder, 'flow.yaml')
  const parameters = { word: { type: 'string' }, n: { type: 'integer' } }
  writeFileSync(path, stringify({ parameters, dag: { nodes: { a: chat('${input.word} ${input.n}') }, edges: [] } }))
  const ended = await infer(['workflow', 'run', path, '--data-dir', join(folder, 'none'), ...args])
  expect([ended.exitCode, ended.stderr]).toEqual([exitCode, expect.stringContaining(text)])
})

test('a workflow is validated, created, shown, run by name, repeated and deleted', async () => {
  const { app, run, write } = await setUp()
  const workflow = {
    name: 'Two words',
    parameters: { word: { type: 'string' } },
    dag: {
      nodes: {
        a: chat('one ${input.word}'),
        b: chat(`mode:status,code=400,text=no ${said('a')}`, { retries: { max: 0 } }),
      },
      edges: [{ from: 'a', to: 'b' }],
    },
  }
  const path = write(workflow)
  expect((await run('workflow', 'check', path)).stdout).toBe(`${path} can be run: 2 nodes.\n`)
  const id = (await run('workflow', 'create', path)).stdout.trimEnd()
  expect(id).toMatch(/^wf_\w{26}$/)
  expect((await run('workflow', 'list')).stdout).toMatch(new RegExp(`${id} +1 +2 .*Two words`))
  const replaced = await run('workflow', 'create', path, '--replace')
  expect([replaced.stdout, replaced.stderr]).toEqual([`${id}\n`, "Version 2 of 'Two words'.\n"])
  const twice = await run('workflow', 'create', path)
  expect([twice.exitCode, twice.stdout]).toEqual([1, ''])
  expect(twice.stderr).toContain(`There is a workflow 'Two words' already: ${id}, version 2.`)
  const headers = { authorization: `Bearer ${app.secret}`, 'content-type': 'application/json' }
  const posted = await fetch(`${app.url}/api/workflows`, { method: 'POST', headers, body: JSON.stringify(workflow) })
  const { workflow: twin } = (await posted.json()) as { workflow: { id: string } }
  const unclear = await run('workflow', 'create', path, '--replace')
  expect([unclear.exitCode, unclear.stderr]).toEqual([64, expect.stringContaining('Delete all but one')])
  await run('workflow', 'delete', twin.id, '--yes')
  const shown = await run('workflow', 'show', 'Two words')
  const again = write({}, 'again.yaml')
  writeFileSync(again, shown.stdout)
  expect((await run('workflow', 'check', again)).exitCode).toBe(0)
  expect((await run('workflow', 'graph', id)).stdout).toContain('└')

  const failed = await run('workflow', 'run', 'Two words', '--param', 'word=cat')
  const execution = /exec_\w{26}/.exec(failed.stderr)![0]
  expect([failed.exitCode, failed.stdout]).toEqual([1, ''])
  expect(failed.stderr).toContain(`Continue from there: infer execution retry ${execution}`)
  expect((await run('execution', 'list', '--workflow', 'Two words')).stdout).toContain(execution)
  const record = await run('execution', 'show', execution.slice(-8))
  expect(record.stdout).toMatch(/\na +completed +fake/)
  expect(record.stdout).toMatch(/\nb +failed +fake/)

  const second = (await run('execution', 'retry', execution, '--from', 'a')).stdout.trimEnd()
  expect(second).toMatch(/^exec_/)
  const watched = await run('execution', 'watch', second)
  expect([watched.exitCode, watched.stderr]).toEqual([1, expect.stringContaining('Node "b" failed')])
  expect((await run('execution', 'logs', second)).exitCode).toBe(0)
  expect((await run('execution', 'delete', execution, '--yes')).stdout).toBe(`${execution} is deleted.\n`)
  expect((await run('workflow', 'delete', 'Two words', '--yes')).stdout).toBe(`${id} is deleted.\n`)
  expect((await run('workflow', 'run', 'Two words')).exitCode).toBe(1)
})

/** A child process of the command line, with its output. */
function start(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [entry, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const heard = { stdout: '', stderr: '' }
  child.stdout.on('data', piece => (heard.stdout += String(piece)))
  child.stderr.on('data', piece => (heard.stderr += String(piece)))
  const ended = once(child, 'close').then(([exitCode]) => ({ exitCode: exitCode as number | null, ...heard }))
  const says = (text: string | RegExp) => expect.poll(() => heard.stderr).toMatch(text)
  return { kill: (signal: NodeJS.Signals) => child.kill(signal), ended, says }
}

const slow = { nodes: { a: chat('mode:slow,ms=60000'), b: chat(`x ${said('a')}`) }, edges: [] }

test('Ctrl-C cancels the execution; one started without waiting is followed and cancelled later', async () => {
  const { env, write, run } = await setUp()
  const path = write(slow)
  const child = start(['workflow', 'run', path], env)
  await child.says(/\na: working/)
  child.kill('SIGINT')
  const { exitCode, stdout, stderr } = await child.ended
  expect([exitCode, stdout]).toEqual([130, ''])
  expect(stderr).toMatch(/Cancelled exec_\w+\.\n$/)

  const left = (await run('workflow', 'run', path, '--no-wait')).stdout.trimEnd()
  expect(left).toMatch(/^exec_\w{26}$/)
  expect((await run('execution', 'cancel', left)).stdout).toBe(`${left} is cancelled.\n`)
  const { executions } = json(await run('execution', 'list', '--json')) as { executions: { status: string }[] }
  expect(executions.map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
})

test('a second Ctrl-C exits, and says how to follow the execution again', async () => {
  const id = 'exec_01K2ZZZZZZ7QK2M9XDAAAAAAAA'
  const execution = { id, status: 'running', created_at: 1, nodes: [] }
  const server = await fakeServer(({ path }, response) => {
    if (path.endsWith('/validate'))
      return answer(response, 200, { valid: true, diagnostics: { type_issues: [], warnings: [] } })
    if (path.endsWith('/run')) return answer(response, 202, { execution })
    // Does not answer the cancel request, as a server that hangs.
    if (path.endsWith('/events'))
      streams([event('snapshot', { execution })], { hold: true })(response, {} as never, {} as never)
  })
  const path = join(temporaryFolder(), 'flow.yaml')
  writeFileSync(path, stringify(slow))
  const child = start(['workflow', 'run', path], { INFER_URL: server.url, INFER_TOKEN: 'sk-test' })
  await child.says(id)
  child.kill('SIGINT')
  await child.says(/Cancelling exec_/)
  child.kill('SIGINT')
  const { exitCode, stderr } = await child.ended
  expect([exitCode, stderr]).toEqual([
    130,
    expect.stringContaining(`${id} continues. Follow it: infer execution watch ${id}`),
  ])
})

test('after a server is killed and restarted on another port, the run still reaches its end', async () => {
  const dataDir = emptyDirectory([fakeModel('fake')])
  const serve = () => start(['serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0', '--log-level', 'info'])
  const first = serve()
  await first.says(/"Ready"/)
  const path = join(dataDir, 'flow.yaml')
  writeFileSync(path, stringify({ nodes: { a: chat('one'), b: chat(`mode:slow,ms=6000 ${said('a')}`) } }))
  const child = start(['workflow', 'run', path, '--data-dir', dataDir])
  await child.says(/b: working/)
  first.kill('SIGKILL')
  await first.ended
  await child.says(/Reconnecting to/)
  const second = serve()
  const { exitCode, stdout, stderr } = await child.ended
  expect([exitCode, stderr]).toEqual([0, expect.stringContaining('Connected again.')])
  expect(stdout.trimEnd().split('\n')).toHaveLength(1)
  // Finished nodes stay finished.
  expect(stderr.match(/a: completed/g)).toHaveLength(1)
  second.kill('SIGTERM')
  await second.ended
})

test('a server that one run has started serves another run to its end', async () => {
  const dataDir = emptyDirectory([fakeModel('fake')])
  const talk = (name: string, ms: number) => {
    const path = join(dataDir, `${name}.yaml`)
    writeFileSync(path, stringify({ nodes: { a: chat(`mode:slow,ms=${ms}`) }, edges: [] }))
    return start(['workflow', 'run', path, '--data-dir', dataDir])
  }
  const first = talk('first', 8_000)
  await first.says(/a: working/)
  const second = talk('second', 12_000)
  await second.says(/second: exec_/)
  const [one, two] = await Promise.all([first.ended, second.ended])
  expect([one.exitCode, two.exitCode]).toEqual([0, 0])
  expect(one.stderr).toMatch(/exec_\w{26} still runs on this server, which stops when it has ended/)
  expect(two.stderr).not.toContain('Reconnecting to')
})

test.skipIf(!hasTerminal)('in a terminal the graph is drawn, and the last frame stays', async () => {
  const { env, write } = await setUp()
  const nodes = { a: chat('one mode:slow,ms=500'), b: chat(`two ${said('a')}`), c: chat(`three ${said('a')}`) }
  const path = write({ name: 'Fork', dag: { nodes, edges: ['b', 'c'].map(to => ({ from: 'a', to })) } })
  const terminal = inTerminal(['workflow', 'run', path], env)
  await terminal.sees('● a')
  await terminal.sees('Fork  3 of 3')
  await terminal.sees('✓ b')
  expect(await terminal.ends()).toBe(0)
  const last = terminal.everything().slice(terminal.everything().lastIndexOf('Fork  3 of 3'))
  expect(last).toContain('╭')
  expect(last).toContain('✓ c')
})

test('a graph is printed as SVG, Mermaid and DOT', async () => {
  const path = join(fixtures, 'story.yaml')
  const [svg, mermaid, dot] = await Promise.all(
    ['--svg', '--mermaid', '--dot'].map(how => infer(['workflow', 'graph', path, how])),
  )
  expect(svg!.stdout).toMatch(/^<svg [^>]+>[\s\S]*prefers-color-scheme: dark[\s\S]*<\/svg>\n$/)
  // Another parser than ours: the whole program, which runs in this process too, does not let sharp read SVG.
  const program = 'import sys, xml.dom.minidom as xml; print(xml.parse(sys.stdin.buffer).documentElement.tagName)'
  expect(execFileSync('python3', ['-c', program], { input: svg!.stdout, encoding: 'utf8' })).toBe('svg\n')
  expect(mermaid!.stdout.split('\n').slice(0, 2)).toEqual(['flowchart TD', '  n0["write<br/>std/chat-completion"]'])
  expect(mermaid!.stdout).toContain('  n1 --> n2')
  expect(dot!.stdout).toContain('"paint" -> "move";')
  expect(readFileSync(path, 'utf8')).toContain('infer/demo')
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp, workspacesIn } from '../../../_app.ts'
import { heardInWav, remoteSpeaker, toneModel } from '../openai/_speech.ts'

/** Text to speech in workflow nodes. */
let app: TestApp
let far: Awaited<ReturnType<typeof remoteSpeaker>>
beforeAll(async () => {
  far = await remoteSpeaker(
    response => void response.writeHead(200, { 'content-type': 'audio/mpeg' }).end('<html>This is no MP3.</html>'),
  )
  app = await startApp({
    models: [toneModel(), toneModel({ id: 'ear', tasks: ['std/audio-transcription'] }), far.model()],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await far[Symbol.asyncDispose]()
})

interface Node {
  node_id: string
  status: string
  cached: boolean
  error: { code: string; message: string } | null
  result: Record<string, unknown> | null
}
interface Execution {
  id: string
  status: string
  outputs: Record<string, { result: Record<string, unknown> }> | null
  nodes: Node[]
}

async function run(nodes: Record<string, object>, edges: [string, string][] = []): Promise<Execution> {
  const dag = { nodes, edges: edges.map(([from, to]) => ({ from, to })) }
  const begun = await app.fetch('/api/workflows/run', { body: { dag, input_params: {} } })
  expect(begun.status).toBe(202)
  const { execution } = (await begun.json()) as { execution: Execution }
  const read = async () =>
    ((await (await app.fetch(`/api/workflow-executions/${execution.id}`)).json()) as { execution: Execution }).execution
  await expect.poll(async () => (await read()).status).toMatch(/completed|failed/)
  return read()
}
const speak = (inputs: object, more: object = {}) => ({ model_id: 'tones', task: 'std/audio-speech', inputs, ...more })
const hear = (url: unknown) => ({ model_id: 'ear', task: 'std/audio-transcription', inputs: { url } })

test('one node synthesizes and another transcribes, by the address, the id or the whole result', async () => {
  const { status, outputs, nodes } = await run(
    {
      speak: speak({ input: 'The cat sat on the mat.', response_format: 'wav' }),
      address: hear('${nodes.speak.result.audio_url}'),
      id: hear('${nodes.speak.result.file_id}'),
      whole: hear('${nodes.speak.result}'),
    },
    [
      ['speak', 'address'],
      ['speak', 'id'],
      ['speak', 'whole'],
    ],
  )
  expect([status, nodes.map(({ error }) => error)]).toEqual(['completed', [null, null, null, null]])
  const { audio_url, file_id, ...facts } = outputs!.speak!.result
  expect(facts).toEqual({ content_type: 'audio/wav', duration: expect.closeTo(0.03 * (46 + 20), 3), format: 'wav' })
  expect(String(audio_url)).toContain(`${app.url}/files/${String(file_id)}/`)
  expect(heardInWav(new Uint8Array(await (await fetch(String(audio_url))).arrayBuffer()))).toBe(
    'The cat sat on the mat.',
  )
  for (const node of ['address', 'id', 'whole']) expect(outputs![node]!.result.text).toBe('The cat sat on the mat.')
  expect(workspacesIn(app.dataDir)).toEqual([])
})

test('with a seed the same text is synthesized once', async () => {
  const node = { speak: speak({ input: 'Seeded', seed: 3, response_format: 'wav' }) }
  const [first, second] = [await run(node), await run(node)]
  expect([first.nodes[0]!.cached, second.nodes[0]!.cached]).toEqual([false, true])
  const answer = await fetch(String(second.outputs!.speak!.result.audio_url))
  expect(heardInWav(new Uint8Array(await answer.arrayBuffer()))).toBe('Seeded')
  const other = { speak: speak({ input: 'Not seeded', response_format: 'wav' }) }
  expect([(await run(other)).nodes[0]!.cached, (await run(other)).nodes[0]!.cached]).toEqual([false, false])
})

test('a file of another type is an engine error, and is not kept', async () => {
  const { status, nodes } = await run({ speak: { ...speak({ input: 'x' }, { retries: { max: 0 } }), model_id: 'far' } })
  expect(status).toBe('failed')
  expect(nodes[0]!.error).toMatchObject({
    code: 'worker_error',
    message: expect.stringContaining('something other than mp3'),
  })
  expect(workspacesIn(app.dataDir)).toEqual([])
})

test('references of a graph are checked before it runs', async () => {
  const checked = await app.fetch('/api/workflows/validate', {
    body: {
      dag: {
        nodes: {
          speak: speak({ input: 7, voice: 'alto', spped: 2 }),
          known: hear('${nodes.speak.result.audio_url}'),
          unknown: hear('${nodes.speak.result.audio}'),
          wrong: speak({ input: 'x', speed: '${nodes.speak.result.format}' }),
        },
        edges: ['known', 'unknown', 'wrong'].map(to => ({ from: 'speak', to })),
      },
    },
  })
  const { diagnostics } = (await checked.json()) as {
    diagnostics: Record<'type_issues' | 'warnings', { node_id: string; path: string; code: string; message: string }[]>
  }
  const said = [...diagnostics.type_issues, ...diagnostics.warnings].map(({ node_id, path, code }) => [
    node_id,
    path,
    code,
  ])
  expect(said).toContainEqual(['speak', 'inputs.input', 'type_mismatch'])
  expect(said).toContainEqual(['speak', 'inputs.spped', 'unknown_input'])
  expect(said).toContainEqual(['unknown', 'inputs.url', 'unknown_output_path'])
  expect(said).toContainEqual(['wrong', 'inputs.speed', 'type_mismatch'])
  expect(said.filter(([node]) => node === 'known')).toEqual([])
})

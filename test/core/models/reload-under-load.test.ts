import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { editConfigFile } from '../../../core/models/config-file.ts'
import { addModel, changeModel, type ModelEntry, removeModel } from '../../../core/models/edit.ts'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { full } from '../../_full.ts'

const streamCount = 50
/** Every ten edits are of all kinds. */
const editCount = full ? 200 : 60
/** Words of one stream, as the fake engine sends them: fifty a second. */
const words = 60

interface Heard {
  model: string
  engine: string
  text: string
}

/** One chat stream, read to its end, whatever the end is. */
async function stream(app: TestApp, model: string): Promise<Heard> {
  const response = await app.fetch('/std/v1/chat/completions', {
    body: {
      model,
      stream: true,
      messages: [{ role: 'user', content: `mode:stream,tokens=${words},rate=50` }],
    },
  })
  return { model, engine: String(response.status), text: await response.text() }
}

/** The fault of a stream; undefined when it is complete. */
function fault({ model, engine, text }: Heard): string | undefined {
  const tokens = [...text.matchAll(/"delta":\{"content":"(?:[^"\\]|\\.)*"/g)].length
  const whole = engine === '200' && text.endsWith('data: [DONE]\n\n') && tokens >= words && !text.includes('"error"')
  return whole ? undefined : `${model} ${engine} ${tokens} words, ends with: ${text.slice(-200)}`
}

/** The resources of this process that an edit could leak. */
const held = (): Record<string, number> => ({
  children: process.getActiveResourcesInfo().filter(one => one === 'ProcessWrap').length,
  listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
})
/** Open files, pipes and sockets; those of kept connections close by themselves after some seconds. */
const descriptors = (): number => readdirSync('/proc/self/fd').length

/** Names of engines that only this test uses. */
const nameOf = (what: string | number): string => `${process.pid}-${what}`

/** The names of the engines with running processes, wrappers included. */
function running(): string[] {
  const names = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      } catch {
        return ''
      }
    })
    .flatMap(line => new RegExp(`\\0--id\\0(${process.pid}-\\w+)`).exec(line)?.[1] ?? [])
  return [...new Set(names)].toSorted((a, b) => a.localeCompare(b))
}

test(`${editCount} edits while ${streamCount} streams run: no stream is broken and no resource is leaked`, {
  timeout: 300_000,
}, async () => {
  const flags = (what: string | number) => ['--id', nameOf(what)]
  await using app = await startApp({
    models: [
      fakeModel('steady', flags('steady'), { concurrency: 64, no_progress: '60s' }),
      fakeModel('changing', flags(0), { concurrency: 64, dispatch_wait_ms: '60s' }),
    ],
  })
  const engines = async () =>
    ((await (await app.fetch('/api/system/status')).json()) as { engines: { id: string; model_id: string }[] }).engines
  await Promise.all([stream(app, 'steady'), stream(app, 'changing')])
  const [steady] = (await engines()).filter(({ model_id }) => model_id === 'steady')
  const before = held()
  const opened = descriptors()

  const edited = new AbortController()
  const faults: string[] = []
  const ended = { steady: 0, changing: 0 }
  const client = async (model: 'steady' | 'changing'): Promise<void> => {
    do {
      const found = fault(await stream(app, model))
      if (found) faults.push(found)
      ended[model]++
    } while (!edited.signal.aborted)
  }
  const clients = Array.from({ length: streamCount }, (_, at) => client(at % 2 ? 'steady' : 'changing'))

  let passing: string | undefined
  const seen = { applied: 0, refused: 0, replaced: 0 }
  for (let edit = 1; edit <= editCount; edit++) {
    const applied = app.logged('The configuration was read again')
    if (edit % 10 === 9) {
      const sound = readFileSync(app.configPath, 'utf8')
      const refused = app.logged('keeps the previous one')
      writeFileSync(app.configPath, `${sound}broken: [\n`)
      await refused
      seen.refused++
      writeFileSync(`${app.configPath}.swp`, sound)
      renameSync(`${app.configPath}.swp`, app.configPath)
    } else if (edit % 10 === 5) {
      editConfigFile(app.configPath, text =>
        changeModel(text, 'changing', {
          command: fakeModel('changing', flags(edit)).command,
        }),
      )
      seen.replaced++
    } else if (passing === undefined && edit % 4 === 1) {
      passing = `passing-${edit}`
      editConfigFile(app.configPath, text => addModel(text, { ...fakeModel('x'), id: passing! } as ModelEntry))
    } else if (passing !== undefined && edit % 4 === 2) {
      editConfigFile(app.configPath, text => removeModel(text, passing!))
      passing = undefined
    } else {
      editConfigFile(app.configPath, text =>
        changeModel(text, 'changing', { description: `edit ${edit}`, max_queue: 512 + edit }),
      )
    }
    await applied
    seen.applied++
  }
  edited.abort()
  await Promise.all(clients)
  const refused = app.errors.splice(0)
  expect(faults).toEqual([])
  expect(refused).toHaveLength(seen.refused)
  expect(seen).toMatchObject({ applied: editCount, replaced: editCount / 10 })
  expect(ended.steady).toBeGreaterThanOrEqual(streamCount / 2)
  expect(ended.changing).toBeGreaterThanOrEqual(streamCount / 2)

  // The model that was not edited has had one engine throughout; the other has the engine of its last edit.
  await expect.poll(async () => (await engines()).length).toBe(2)
  expect((await engines()).find(({ model_id }) => model_id === 'steady')!.id).toBe(steady!.id)
  await expect.poll(held).toEqual(before)
  await expect.poll(descriptors, { interval: 250 }).toBeLessThanOrEqual(opened)
  expect(running()).toEqual([nameOf(editCount - 5), nameOf('steady')])
  const status = (await (await app.fetch('/api/model-status')).json()) as { models: { queue_depth: number }[] }
  expect(status.models.map(({ queue_depth }) => queue_depth)).toEqual(status.models.map(() => 0))
})

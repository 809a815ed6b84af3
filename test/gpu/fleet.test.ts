import { existsSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { tinyChat } from '../../bin/tiny-chat.ts'
import { Failure } from '../../core/failure.ts'
import { Model } from '../../core/models/model.ts'
import { cardProcesses, discover } from '../../gpu/devices/nvidia-smi.ts'
import { noWrapper } from '../../gpu/sandbox/wrapper.ts'
import { cardLine, installNvidiaSmi } from '../fixtures/nvidia-smi.ts'
import { chat, cpu, fake, fleetOf, send, statsOf } from './_fleet.ts'
import { fakeEngine, survivors, temporary, until } from './launcher/_launch.ts'

const loaded = (fleet: { snapshot(): { residents: { modelId: string; state: string }[] } }) =>
  fleet.snapshot().residents.map(({ modelId, state }) => `${modelId} ${state}`)

test('a model that cannot run on this machine is unavailable with the reason before its first request', async () => {
  const folder = temporary()
  const large = join(folder, 'large.gguf')
  writeFileSync(large, '')
  truncateSync(large, 12 * 2 ** 30)
  const models = [
    fake('fits'),
    fake('configured', [], { memory: '9GiB' }),
    fake('file', [], { memory: undefined, source: large }),
    fake('off', [], { memory: '9GiB', enabled: false }),
    Model.parse({ id: 'card', engine: 'vllm', source: folder, tasks: ['std/chat-completion'] }),
  ]
  const { fleet } = await fleetOf(models)
  await until(() => fleet.activity('card').status === 'unavailable')
  expect(fleet.snapshot().models).toMatchObject({
    fits: { status: 'cold', reason: null },
    configured: { status: 'unavailable', reason: expect.stringContaining("'configured' needs 9.0 GiB of memory") },
    file: { status: 'unavailable', reason: expect.stringContaining("'file' needs 14.7 GiB of memory") },
    off: { status: 'disabled', reason: null },
    card: { status: 'unavailable', reason: expect.stringContaining("'card' needs a GPU") },
  })
  const plans = await Promise.all(models.map(model => fleet.plan(model)))
  expect(plans.map(({ status }) => status)).toEqual(['load', 'refused', 'refused', 'refused', 'refused'])
  const { configured, file, card } = fleet.snapshot().models
  const refusals = [configured, file, { reason: "The model 'off' is disabled here." }, card]
  expect(plans.map(({ placement }) => placement?.detail ?? null)).toEqual(['on the processor', null, null, null, null])
  expect(plans.slice(1).map(({ detail }) => detail)).toEqual(refusals.map(one => one!.reason))
})

test('an engine beside another on the processor gets a share of its threads', async () => {
  const [first, second] = ['a', 'b'].map(id => fake(id, ['--name', '{threads}'], { memory: '1GiB' })) as [Model, Model]
  const cards = async () => ({ devices: [], reason: null, broken: false })
  const devices = { cards, processes: async () => null, cpu: { ...cpu, cores: 9 } }
  const { fleet } = await fleetOf([first, second], { devices })
  await fleet.load(first)
  const alone = { count: 8, reason: 'the 9 cores but one for the server' }
  const beside = { count: 4, reason: `${alone.reason}, shared with another engine` }
  expect([(await fleet.plan(first)).threads, (await fleet.plan(second)).threads]).toEqual([alone, beside])
  await fleet.load(second)
  expect(fleet.snapshot().residents.map(({ command }) => command.at(-1))).toEqual(['8', '4'])
  expect((await fleet.plan(first)).threads).toEqual(alone)
})

describe('leases', () => {
  test('the first one loads the model and reports how long that took; the next one is immediate', async () => {
    const model = fake('a', ['--ready-after', '200'])
    const { fleet } = await fleetOf([model])
    expect(fleet.snapshot()).toMatchObject({ residents: [], models: { a: { status: 'cold', engineStarts: 0 } } })
    const first = await fleet.lease(model, { waitMs: 30_000 })
    expect(first.loadedMs).toBeGreaterThan(100)
    expect(first.waitedMs).toBeGreaterThanOrEqual(first.loadedMs)
    const second = await fleet.lease(model, { waitMs: 0 })
    expect(second).toMatchObject({ modelId: 'a', waitedMs: 0, loadedMs: 0, engineId: first.engineId })
    expect(fleet.snapshot()).toMatchObject({
      residents: [
        { engineId: first.engineId, leases: 2, slots: 2, bytes: 4 * 2 ** 30, devices: ['cpu'], state: 'ready' },
      ],
      devices: [{ id: 'cpu', bookedBytes: 4 * 2 ** 30 }],
      models: { a: { status: 'warm', engineStarts: 1 } },
    })
    expect(Math.abs(Date.now() - fleet.snapshot().residents[0]!.startedAt)).toBeLessThan(60_000)
    second.release()
    first.release()
  })

  test('at most as many requests run as there are slots; the others wait for one', async () => {
    const model = fake('a', [], { concurrency: 2 })
    const { fleet, log } = await fleetOf([model])
    await Promise.all(Array.from({ length: 10 }, () => chat(fleet, model, 'mode:slow,ms=20')))
    const answered = log.lines.filter(line => line.includes('First answer of an engine'))
    expect(answered).toEqual([expect.stringContaining('"runs":"on the processor"')])
    expect(answered[0]).toMatch(/^info /)
    expect(await statsOf(fleet, model)).toMatchObject({ maxRunning: 2, finished: 10 })
  })

  test('the signal ends a wait, and the slot goes to the next request', async () => {
    const model = fake('a', [], { concurrency: 1 })
    const { fleet } = await fleetOf([model])
    const held = await fleet.lease(model, { waitMs: 30_000 })
    const gone = new AbortController()
    const waiting = fleet.lease(model, { waitMs: 30_000, signal: gone.signal })
    const next = fleet.lease(model, { waitMs: 30_000 })
    await until(() => fleet.waiting('a') === 2)
    gone.abort(new Failure('cancelled', 'the caller has left'))
    await expect(waiting).rejects.toThrow('the caller has left')
    expect(fleet.waiting('a')).toBe(1)
    held.release()
    ;(await next).release()
    await expect(fleet.lease(model, { waitMs: 1, signal: gone.signal })).rejects.toThrow('the caller has left')
  })

  test('a wait that is too short fails with the reason, and the load continues', async () => {
    const model = fake('a', ['--ready-after', '300'])
    const { fleet } = await fleetOf([model])
    await expect(fleet.lease(model, { waitMs: 0 })).rejects.toMatchObject({ code: 'model_warming_up' })
    await until(() => fleet.snapshot().models.a!.status === 'warm')
    expect((await chat(fleet, model)).failure).toBeUndefined()
  })

  test('while a model loads, its queue takes max_queue requests besides those that will get its slots', async () => {
    const model = fake('a', ['--ready-after', '500'], { concurrency: 2, max_queue: 1 })
    const { fleet } = await fleetOf([model])
    const asked = Array.from({ length: 5 }, () => fleet.lease(model, { waitMs: 30_000 }))
    for (const refused of asked.slice(3)) await expect(refused).rejects.toMatchObject({ code: 'queue_full' })
    expect(fleet.activity('a').status).not.toBe('warm')
    const served = await Promise.all(
      asked.slice(0, 3).map(async one => {
        using lease = await one
        return lease.loadedMs > 0
      }),
    )
    expect(served).toEqual([true, true, true])
  })

  test('the queue is bounded', async () => {
    const model = fake('a', [], { concurrency: 1, max_queue: 1 })
    const { fleet } = await fleetOf([model])
    const held = await fleet.lease(model, { waitMs: 30_000 })
    const waiting = fleet.lease(model, { waitMs: 30_000 })
    expect(fleet.waiting('a')).toBe(1)
    await expect(fleet.lease(model, { waitMs: 30_000 })).rejects.toMatchObject({ code: 'queue_full' })
    held.release()
    ;(await waiting).release()
  })
})

describe('engines', () => {
  test('an engine gets its own key, which is not in its arguments, and no environment of the server', async () => {
    const model = fake('a')
    const { fleet } = await fleetOf([model], { environment: { ...process.env, INFER_MASTER_KEY: 'secret' } })
    const { names } = await statsOf(fleet, model)
    expect(names).toContain('INFER_ENGINE_KEY')
    expect(names).not.toContain('INFER_MASTER_KEY')
    expect((await chat(fleet, model)).failure).toBeUndefined()
  })

  test('an engine that fails to start reports the reason to those who wait, and retries are delayed', async () => {
    const model = fake('a', ['--exit', '3'])
    const { fleet, log } = await fleetOf([model])
    const message = expect.stringMatching(
      /^Model .a. cannot be started: Engine exited \(3\): out of memory\. 8\.0 GiB were free for it/,
    ) as string
    await expect(fleet.lease(model, { waitMs: 30_000 })).rejects.toMatchObject({ code: 'no_capacity', message })
    expect(fleet.snapshot().models.a).toMatchObject({ engineStarts: 1, engineFailures: 1 })
    expect(log.lines.some(line => line.startsWith('warn An engine could not be started'))).toBe(true)
  })

  test('a crash loop opens the circuit after five starts: later requests fail at once, with the reason', async () => {
    const model = fake('a', ['--exit', '3'])
    const { fleet } = await fleetOf([model])
    const starts = () => fleet.snapshot().models.a!.engineStarts
    for (let at = 0; starts() < 5; at++) {
      expect(at).toBeLessThan(50)
      await expect(fleet.lease(model, { waitMs: 30_000 })).rejects.toMatchObject({ code: 'no_capacity' })
    }
    const before = performance.now()
    await expect(fleet.lease(model, { waitMs: 30_000 })).rejects.toMatchObject({
      code: 'no_capacity',
      message: expect.stringMatching(/out of memory/),
      retryAfterMs: expect.any(Number),
    })
    expect(performance.now() - before).toBeLessThan(15_000)
    expect(fleet.snapshot().models.a).toMatchObject({ status: 'unavailable', engineStarts: 5, engineFailures: 5 })
  })

  test('a program that is not installed is reported as such', async () => {
    const model = Model.parse({ id: 'a', engine: 'llama-server', source: '/none.gguf', memory: '1GiB' })
    const { fleet } = await fleetOf([model], { environment: { PATH: '/nowhere' } })
    await expect(fleet.lease(model, { waitMs: 30_000 })).rejects.toThrow(/'llama-server' .* is not installed/)
  })

  test('a healthy engine that answers nothing: the request fails after no_progress, it is replaced', async () => {
    const model = fake('a', ['--unresponsive'], { no_progress: '400ms' })
    const { fleet } = await fleetOf([model])
    expect((await chat(fleet, model)).failure).toMatchObject({ code: 'timeout' })
    await until(() => fleet.snapshot().residents.length === 0)
    expect(fleet.snapshot().models.a).toMatchObject({ engineFailures: 1 })
  })

  test('an engine that crashes under load is restarted, and a request that only waited is served', async () => {
    const model = fake('a', [], { concurrency: 1 })
    const { fleet } = await fleetOf([model])
    expect((await chat(fleet, model)).failure).toBeUndefined()
    using lease = await fleet.lease(model, { waitMs: 30_000 })
    const waiting = chat(fleet, model)
    await until(() => fleet.waiting('a') === 1)
    expect((await send(lease, 'mode:segfault').answer).failure?.message).toMatch(/SIGSEGV/)
    expect((await waiting).failure).toBeUndefined()
    expect(fleet.snapshot().models.a).toMatchObject({ engineStarts: 2, engineFailures: 1 })
  })

  test('a killed engine (kill -9 from outside) is detected and replaced', async () => {
    const model = fake('a')
    const { fleet } = await fleetOf([model])
    await fleet.load(model)
    const { pid, engineId } = fleet.snapshot().residents[0]!
    process.kill(pid!, 'SIGKILL')
    await until(() => fleet.snapshot().residents.length === 0)
    expect(await survivors(`${engineId}-1`)).toEqual([])
    expect((await chat(fleet, model)).failure).toBeUndefined()
  })

  test('an idle model is unloaded after its idle_ttl', async () => {
    const model = fake('a', [], { idle_ttl: '300ms' })
    const { fleet } = await fleetOf([model])
    await chat(fleet, model)
    await until(() => fleet.snapshot().residents.length === 0)
    expect(fleet.snapshot().models.a).toMatchObject({ status: 'cold', engineFailures: 0 })
  })

  test('a model that is kept loaded is loaded at the start, and again after its engine exits', async () => {
    const model = fake('a', [], { replicas: { min: 1, max: 1 }, idle_ttl: '100ms' })
    const { fleet } = await fleetOf([model])
    await until(() => loaded(fleet).join() === 'a ready')
    process.kill(fleet.snapshot().residents[0]!.pid!, 'SIGKILL')
    await until(() => fleet.snapshot().models.a!.engineStarts === 2 && loaded(fleet).join() === 'a ready')
  })

  test('a busy engine gets a replica where the configuration allows it', async () => {
    const model = fake('a', [], { concurrency: 1, memory: '1GiB', replicas: { min: 0, max: 2 } })
    const { fleet } = await fleetOf([model])
    const leases = await Promise.all([fleet.lease(model, { waitMs: 30_000 }), fleet.lease(model, { waitMs: 30_000 })])
    expect(new Set(leases.map(lease => lease.engineId)).size).toBe(2)
    for (const lease of leases) lease.release()
  })
})

describe('memory for one model', () => {
  test('two models under load take turns; no request fails or is interrupted', {
    timeout: 120_000,
  }, async () => {
    const models = ['a', 'b'].map(id => fake(id, [], { memory: '6GiB' }))
    // Long enough for several requests on the slowest machine: how many fit is not tested here.
    const { fleet } = await fleetOf(models, { limits: { engine_backoff: 100, order_bound: 1, cancel_grace: 500 } })
    const calls = Array.from({ length: 24 }, (_, at) => models[at % 2]!)
    const answers = await Promise.all(calls.map(model => chat(fleet, model, 'mode:slow,ms=40', 100_000)))
    expect(answers.filter(answer => answer.failure)).toEqual([])
    const said = answers.map(answer => (JSON.parse(answer.text) as { model: string }).model)
    expect(said).toEqual(calls.map(model => model.id))
    const { a, b } = fleet.snapshot().models
    // Grouped by the loaded model: far fewer loads than changes of model in the order of arrival.
    expect(a!.engineStarts + b!.engineStarts).toBeLessThan(12)
    expect(a!.engineFailures + b!.engineFailures).toBe(0)
  })

  test('an idle model is evicted; booked memory never exceeds the capacity', async () => {
    const models = ['a', 'b', 'c'].map(id => fake(id))
    const { fleet } = await fleetOf(models)
    // Nobody has asked for it: it is sized now.
    const plan = () => fleet.plan(models[2]!)
    const load = "A request loads 'c' on cpu, which takes about 6 s."
    expect(await plan()).toMatchObject({
      status: 'load',
      detail: load,
      evict: [],
      figures: { bytesFrom: 'configured' },
    })
    expect(fleet.snapshot().models.c).toMatchObject({ status: 'cold', engineStarts: 0 })
    for (const model of [models[0]!, models[1]!, models[0]!, models[2]!]) {
      if (model === models[2])
        expect(await plan()).toMatchObject({
          status: 'load',
          evict: [{ modelId: 'b' }],
          figures: { bytes: 4 * 2 ** 30 },
        })
      expect((await chat(fleet, model)).failure).toBeUndefined()
      expect(fleet.snapshot().devices[0]!.bookedBytes).toBeLessThanOrEqual(8 * 2 ** 30)
    }
    expect(loaded(fleet).sort()).toEqual(['a ready', 'c ready'])
  })

  test('a model that is too large is refused with the figures', async () => {
    const model = fake('huge', [], { memory: '64GiB' })
    const { fleet } = await fleetOf([model])
    await expect(fleet.lease(model, { waitMs: 30_000 })).rejects.toMatchObject({
      code: 'no_capacity',
      message: "'huge' needs 64.0 GiB of memory; the most that one processor here has is 8.0 GiB.",
      retryable: false,
    })
  })
})

test('a model that can never be loaded is refused with the reason for good, without a process', async () => {
  const folder = temporary()
  const source = join(folder, 'chat.gguf')
  writeFileSync(source, Buffer.from(tinyChat()).toString('latin1').replace('{% endfor -%}', '{% endfro -%}'), 'latin1')
  const chats = Model.parse({ id: 'chats', source })
  const gone = Model.parse({ id: 'gone', source: join(folder, 'none.gguf') })
  const { fleet } = await fleetOf([chats, gone])
  // That a file is missing is known before the first request.
  await until(() => fleet.activity('gone').status === 'unavailable')
  const refused = { code: 'model_load_failed', retryable: false }
  const reason = "The model 'chats' cannot be loaded. The chat template of the model is not valid: Unknown statement"
  await expect(fleet.lease(chats, { waitMs: 30_000 })).rejects.toMatchObject({
    ...refused,
    message: expect.stringContaining(reason),
    retryAfterMs: undefined,
  })
  await expect(fleet.load(gone)).rejects.toMatchObject({
    ...refused,
    message: "The model 'gone' cannot be loaded. Its file does not exist.",
    retryAfterMs: 60_000,
  })
  expect(fleet.activity('chats')).toMatchObject({ status: 'unavailable', engineStarts: 0 })
  expect(fleet.activity('chats').reason).toContain(reason)
})

test('files that the engine refuses are refused with its words, without another start, until they change', async () => {
  const folder = temporary()
  const source = join(folder, 'weights.bin')
  writeFileSync(source, 'of a newer model')
  const said = "llama_model_load: error loading model: missing tensor 'blk.0.attn_q.weight'"
  const starts = join(folder, 'fails')
  writeFileSync(starts, '')
  const script = `const fs = require('node:fs'); if (fs.existsSync('${starts}')) { console.error(${JSON.stringify(said)}); console.error('main: exiting due to model loading error'); process.exit(1) } process.argv.splice(1, 0, '${fakeEngine}'); import('${fakeEngine}')`
  const command = [process.execPath, '-e', script, '--', '--socket', '{socket}', '--id', '{id}']
  const model = fake('new', [], { source, command })
  const other = fake('other', [], { concurrency: 1 })
  const { fleet } = await fleetOf([model, other])
  const held = await fleet.lease(other, { waitMs: 30_000 })
  const refused = {
    code: 'model_load_failed',
    retryable: false,
    retryAfterMs: undefined,
    message: expect.stringContaining(
      "Its engine says: error loading model: missing tensor 'blk.0.attn_q.weight'. A newer",
    ),
  }
  for (let time = 0; time < 3; time++)
    await expect(fleet.lease(model, { waitMs: 30_000 })).rejects.toMatchObject(refused)
  expect(fleet.activity('new')).toMatchObject({ status: 'unavailable', engineStarts: 1, engineFailures: 1 })
  expect(fleet.activity('new').reason).toContain('missing tensor')
  rmSync(starts)
  writeFileSync(source, 'of a model that the engine knows')
  // A decision about another model, while the new files are read, refuses nothing because of the old ones.
  const chats = [chat(fleet, model), chat(fleet, other)]
  held.release()
  expect((await Promise.all(chats)).map(({ failure }) => failure)).toEqual([undefined, undefined])
})

describe('load, unload, close', () => {
  test('load and unload on request', async () => {
    const model = fake('a')
    const { fleet } = await fleetOf([model])
    await fleet.load(model)
    expect(loaded(fleet)).toEqual(['a ready'])
    const { engineId } = fleet.snapshot().residents[0]!
    await fleet.unload('a')
    expect(loaded(fleet)).toEqual([])
    expect(await survivors(`${engineId}-1`)).toEqual([])
    await fleet.unload('nobody')
  })

  test('unload waits for running requests', async () => {
    const model = fake('a')
    const { fleet } = await fleetOf([model])
    const running = chat(fleet, model, 'mode:slow,ms=400')
    await until(() => fleet.snapshot().residents[0]?.leases === 1)
    await fleet.unload('a')
    expect((await running).failure).toBeUndefined()
  })

  test('a failing load rejects', async () => {
    const model = fake('a', ['--exit', '1'])
    const { fleet } = await fleetOf([model])
    await expect(fleet.load(model)).rejects.toThrow(/cannot be started: Engine exited \(1\)/)
  })

  test('closing lets running requests end in time, accepts no new ones, and leaves no process', async () => {
    const models = ['a', 'b'].map(id => fake(id, ['--grandchild']))
    const { fleet } = await fleetOf(models)
    await fleet.load(models[1]!)
    const running = chat(fleet, models[0]!, 'mode:slow,ms=1500')
    await until(() => fleet.snapshot().residents.some(resident => resident.leases === 1))
    const ids = fleet.snapshot().residents.map(resident => `${resident.engineId}-1`)
    const closed = fleet.close(30_000)
    await expect(fleet.lease(models[0]!, { waitMs: 1000 })).rejects.toMatchObject({ code: 'shutting_down' })
    await expect(fleet.load(models[0]!)).rejects.toMatchObject({ code: 'shutting_down' })
    expect((await running).failure).toBeUndefined()
    await closed
    await fleet.close(0)
    for (const id of ids) expect(await survivors(id)).toEqual([])
    expect(fleet.snapshot().residents).toEqual([])
  })

  test('requests that run at the deadline are aborted with the reason', async () => {
    const model = fake('a')
    const { fleet } = await fleetOf([model])
    const lease = await fleet.lease(model, { waitMs: 30_000 })
    const { answer } = send(lease, 'mode:silent')
    await fleet.close(50)
    expect((await answer).failure).toMatchObject({ code: 'shutting_down' })
    lease.release()
  })

  test('closing again with no grace ends the wait of the first call', async () => {
    const model = fake('a')
    const { fleet } = await fleetOf([model])
    const lease = await fleet.lease(model, { waitMs: 30_000 })
    const { answer } = send(lease, 'mode:silent')
    const first = fleet.close(3_600_000)
    await fleet.close(0)
    await first
    expect((await answer).failure).toMatchObject({ code: 'shutting_down' })
  })

  test('closing during a load ends the load', async () => {
    const model = fake('a', ['--hang'])
    const { fleet } = await fleetOf([model])
    const waiting = fleet.lease(model, { waitMs: 30_000 })
    const heard = expect(waiting).rejects.toMatchObject({ code: 'shutting_down' })
    await until(() => fleet.snapshot().residents.length === 1)
    await fleet.close(0)
    await heard
    expect(fleet.snapshot().residents).toEqual([])
  })
})

describe('GPUs', () => {
  /** A source of devices that reads a fake nvidia-smi, whose figures follow the number of running engines. */
  function cardsOf(dataDir: string, cards: string, processes?: string) {
    installNvidiaSmi(dataDir, { cards, ...(processes === undefined ? {} : { processes }) })
    const environment = { PATH: dataDir }
    return { cards: () => discover({ environment }), processes: () => cardProcesses({ environment }), cpu }
  }
  const l4 = { name: 'NVIDIA L4', 'memory.total': 23034 }
  const two = `echo '${cardLine({ ...l4, 'memory.used': 0 })}'
echo '${cardLine({ ...l4, index: 1, uuid: 'GPU-2', 'memory.used': 2048 })}'`

  test('an engine sees exactly the GPUs that it was given', async () => {
    const devices = cardsOf(temporary(), two)
    const models = [
      fake('a', [], { memory: '20GiB' }),
      fake('b', [], { memory: '16GiB' }),
      fake('c', [], { devices: 'cpu' }),
    ]
    const { fleet } = await fleetOf(models, { devices })
    const seen = await Promise.all(models.map(async model => JSON.stringify(await statsOf(fleet, model))))
    expect(seen[0]).toContain('"CUDA_VISIBLE_DEVICES":"0","CUDA_DEVICE_ORDER":"PCI_BUS_ID"')
    expect(seen[1]).toContain('"CUDA_VISIBLE_DEVICES":"1"')
    expect(seen[2]).toContain('"CUDA_VISIBLE_DEVICES":""')
    expect(fleet.snapshot().devices).toMatchObject([
      { id: 'gpu0', kind: 'nvidia', totalBytes: 23034 * 2 ** 20, usedBytes: 0 },
      { id: 'gpu1', usedBytes: 2048 * 2 ** 20, bookedBytes: 16 * 2 ** 30 },
      { id: 'cpu', bookedBytes: 4 * 2 ** 30 },
    ])
  })

  test('a model over two GPUs has both; memory used by other processes is not assigned', async () => {
    const devices = cardsOf(temporary(), two)
    const wide = fake('a', [], { memory: '38GiB', devices: 2 })
    const wider = fake('b', [], { memory: '44GiB', devices: 2 })
    const { fleet } = await fleetOf([wide, wider], { devices })
    expect(JSON.stringify(await statsOf(fleet, wide))).toContain('"CUDA_VISIBLE_DEVICES":"0,1"')
    await expect(fleet.lease(wider, { waitMs: 1000 })).rejects.toThrow(/needs 22\.0 GiB of memory on each of 2 GPUs/)
  })

  test('an engine on a GPU that falls off is loaded on another one, and both are told apart in the status', async () => {
    const directory = temporary()
    const flag = join(directory, 'lost')
    const lost = cardLine({ ...l4, 'memory.total': '[GPU is lost]', 'memory.used': '[GPU is lost]' })
    const script = `if [ -e ${flag} ]; then echo '${lost}'; else echo '${cardLine(l4)}'; fi
echo '${cardLine({ ...l4, index: 1, uuid: 'GPU-2' })}'`
    const models = [fake('a', [], { memory: '20GiB' }), fake('too-large', [], { memory: '30GiB' })]
    const { fleet, log } = await fleetOf(models, { devices: cardsOf(directory, script) })
    await fleet.load(models[0]!)
    expect(fleet.snapshot().residents[0]!.devices).toEqual(['gpu0'])
    writeFileSync(flag, '')
    await until(() => {
      // A model that does not fit is refused after a measurement only, once a second.
      fleet.load(models[1]!).catch(() => {})
      return fleet.snapshot().devices[0]!.fault !== null
    })
    expect((await chat(fleet, models[0]!)).failure).toBeUndefined()
    // The engine on the lost GPU may end later than the other one begins.
    await until(() => fleet.snapshot().residents.length === 1)
    expect(fleet.snapshot()).toMatchObject({
      devices: [
        { id: 'gpu0', fault: "nvidia-smi reports 'GPU is lost' for it.", usedBytes: null },
        { fault: null },
        {},
      ],
      residents: [{ devices: ['gpu1'] }],
    })
    expect(log.lines.filter(line => line.includes('A GPU is not used any more'))).toHaveLength(1)
  })

  test('a load is placed by what is free when it begins, not by the last measurement', async () => {
    const directory = temporary()
    const inUse = join(directory, 'used')
    const script = `read used < ${inUse}; echo "${cardLine({ ...l4, 'memory.used': '$used' })}"
echo '${cardLine({ ...l4, index: 1, uuid: 'GPU-2', 'memory.used': 0 })}'`
    writeFileSync(inUse, '0\n')
    const model = fake('a', [], { memory: '18GiB' })
    const { fleet } = await fleetOf([model], { devices: cardsOf(directory, script) })
    writeFileSync(inUse, '12000\n')
    const measuredAt = performance.now()
    await until(() => performance.now() - measuredAt > 1_000)
    await fleet.load(model)
    expect(fleet.snapshot()).toMatchObject({
      residents: [{ devices: ['gpu1'] }],
      models: { a: { engineStarts: 1, engineFailures: 0 } },
    })
  })

  test('after an eviction the next load waits until the GPU reports the free memory', async () => {
    const directory = temporary()
    const flag = join(directory, 'freed')
    // The GPU is full until the file exists, as a real one is for a second after a process has ended.
    const script = `if [ -e ${flag} ]; then used=0; else used=20000; fi
echo "${cardLine({ ...l4, 'memory.used': '$used' })}"`
    writeFileSync(flag, '')
    const devices = cardsOf(directory, script)
    const models = ['a', 'b'].map(id => fake(id, [], { memory: '20GiB' }))
    const { fleet } = await fleetOf(models, { devices })
    await fleet.load(models[0]!)
    rmSync(flag)
    const second = fleet.load(models[1]!)
    await until(() => loaded(fleet).join() === 'b starting')
    expect(fleet.snapshot().residents[0]!.pid).toBeNull()
    writeFileSync(flag, '')
    await second
    expect(loaded(fleet)).toEqual(['b ready'])
    expect(existsSync(flag)).toBe(true)
  })

  test('what an engine used of a GPU is booked for the next one, also after a restart', async () => {
    const dataDir = temporary()
    const inUse = join(dataDir, 'used')
    const script = `read used < ${inUse}; echo "${cardLine({ ...l4, 'memory.used': '$used' })}"`
    const model = fake('a', [], { memory: '4GiB' })
    const open = () => {
      writeFileSync(inUse, '0\n')
      return fleetOf([model], { devices: cardsOf(dataDir, script), dataDir })
    }
    const before = await open()
    writeFileSync(inUse, '6144\n')
    await before.fleet.load(model)
    await until(() => before.fleet.snapshot().residents[0]!.bytes === 6 * 2 ** 30)
    await before.fleet.close(0)
    const { fleet } = await open()
    await fleet.load(model)
    expect(fleet.snapshot().residents).toMatchObject([{ modelId: 'a', bytes: 6 * 2 ** 30 }])
  })

  test('an engine that grows is booked as the driver reports its process, and other programs by the rest', async () => {
    const dataDir = temporary()
    const file = (name: string) => join(dataDir, name)
    const cards = `read used < ${file('used')}; echo "${cardLine({ ...l4, 'memory.used': '$used' })}"`
    const devices = cardsOf(dataDir, cards, `read row < ${file('row')}; echo "GPU-1, $row"`)
    const driverReports = (used: number, row: string) => {
      writeFileSync(file('row'), `${row}\n`)
      writeFileSync(file('used'), `${used}\n`)
    }
    driverReports(0, '1, x, 1')
    const models = [fake('a', [], { memory: '4GiB' }), fake('too-large', [], { memory: '30GiB' })]
    const { fleet } = await fleetOf(models, { devices })
    await fleet.load(models[0]!)
    driverReports(20_480, `${fleet.snapshot().residents[0]!.pid}, python, 10240`)
    const booked = () => fleet.snapshot().residents[0]!.bytes / 2 ** 30
    // A model that does not fit is refused after a measurement only, once a second.
    await until(() => {
      fleet.load(models[1]!).catch(() => {})
      return booked() > 4
    })
    expect(booked()).toBe(10)
    await expect(fleet.load(models[1]!)).rejects.toThrow(
      "'too-large' needs 30.0 GiB of memory; the most that one GPU here has is 11.8 GiB.",
    )
  })

  test('without a GPU, models for the CPU run, and the others report the reason', async () => {
    const models = [fake('a'), Model.parse({ id: 'v', engine: 'vllm', memory: '1GiB' })]
    const { fleet } = await fleetOf(models)
    expect((await chat(fleet, models[0]!)).failure).toBeUndefined()
    await expect(fleet.lease(models[1]!, { waitMs: 1000 })).rejects.toThrow(
      "'v' needs a GPU, and this server has found none.",
    )
  })

  test('a driver that fails is a warning, not an error', async () => {
    const devices = cardsOf(temporary(), 'echo "NVIDIA-SMI has failed" >&2; exit 9')
    const model = fake('a')
    const { fleet, log } = await fleetOf([model], { devices })
    expect((await chat(fleet, model)).failure).toBeUndefined()
    expect(log.lines.filter(line => line.includes('The GPUs cannot be used'))).toHaveLength(1)
  })
})

test('without any wrapper the fleet works and warns', async () => {
  const model = fake('a')
  const { fleet, log } = await fleetOf([model], { wrapper: noWrapper })
  expect((await chat(fleet, model)).failure).toBeUndefined()
  expect(log.lines[0]).toMatch(/^warn Engines end when infer stops them/)
})

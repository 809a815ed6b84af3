import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { pullModel } from '../../../../core/models/hub/pull.ts'
import type { Endpoint, Launcher } from '../../../../gpu/launcher/launcher.ts'
import { openLaunches } from '../../../../gpu/launcher/launches.ts'
import { openOutputs } from '../../../../gpu/launcher/outputs.ts'
import { sendSignal } from '../../../../gpu/launcher/processes.ts'
import { socketFolder } from '../../../../gpu/launcher/ssh/socket-folder.ts'
import { openSshLauncher } from '../../../../gpu/launcher/ssh/ssh.ts'
import { fetchHealth } from '../../../../gpu/requests/health.ts'
import { unconfined } from '../../../../gpu/sandbox/level.ts'
import { openHub } from '../../../fixtures/hub.ts'
import { endSurvivors, keptLog, launchOptions, survivors, temporary, until } from '../_launch.ts'
import { hasMounts, noSshServer, openBox } from './_box.ts'

const missing = noSshServer()
const box = missing === undefined ? await openBox() : undefined
afterAll(() => box?.close())

const signal = () => AbortSignal.timeout(30_000)
let count = 0

/** The launcher of a server, and its launches. */
async function openServer(dataDir = temporary(), more: object = {}, at = box!) {
  const log = keptLog()
  const serverId = `server-${++count}`
  const settings = { ...at.settings, ...more }
  const launcher = await openSshLauncher({ pool: 'box2', settings, dataDir, serverId, ssh: at.ssh, host: at.host, log })
  const launches = await openLaunches({ launcher, outputs: openOutputs(), log })
  onTestFinished(() => launches.close())
  return { launcher, launches, log }
}

const newId = () => {
  const launchId = `wkr_${process.pid}s${++count}-1`
  onTestFinished(() => endSurvivors(launchId))
  return launchId
}

const isReady = async (endpoint: Endpoint | undefined) =>
  !!endpoint && (await fetchHealth(endpoint, '/health', [], 2_000)).health === 'ready'

const lists = (launcher: Launcher) =>
  launcher.list(signal()).then(
    () => true,
    () => false,
  )

/** A stream of the fake engine: resolves with the whole text, `began` when its first piece is here. */
function stream({ socketPath }: Endpoint, tokens: number, rate: number) {
  const began = Promise.withResolvers<void>()
  const whole = new Promise<string>((resolve, reject) => {
    let text = ''
    const mode = `mode:stream,tokens=${tokens},rate=${rate}`
    const body = JSON.stringify({ model: 'fake', stream: true, messages: [{ role: 'user', content: mode }] })
    const headers = { 'content-type': 'application/json' }
    const sent = request({ socketPath, path: '/v1/chat/completions', method: 'POST', headers }, answer => {
      answer.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
        began.resolve()
      })
      answer.on('end', () => resolve(text)).on('error', reject)
    })
    sent.on('error', reject).end(body)
  })
  return { began: began.promise, whole }
}

describe.skipIf(missing !== undefined)(`an ssh connection to a machine${missing ? ` (${missing})` : ''}`, () => {
  test('is opened again, and the engine is the same', async () => {
    const { launches, launcher } = await openServer()
    const launchId = newId()
    const launched = await launches.start(launchOptions(launchId, []))
    await until(() => isReady(launched.endpoint()))
    const [before, processes] = [launched.endpoint(), await survivors(launchId)]
    const running = stream(before!, 100_000, 100)
    await running.began
    await box!.cut()
    await expect(running.whole).rejects.toThrow()
    await until(() => isReady(launched.endpoint()))
    expect(launched.endpoint()).toEqual(before)
    expect(await survivors(launchId)).toEqual(processes)
    expect((await launcher.list(signal())).map(one => one.state)).toEqual(['running'])
    expect(launches.logs(launchId).filter(line => line.startsWith('listening'))).toHaveLength(1)
    launched.exited.catch(() => {})
    await launches.stop(launchId, 0)
    expect(await survivors(launchId)).toEqual([])
  })

  test('is not needed by a stream for the agent, which is started again after kill -9', async () => {
    const { launches, launcher } = await openServer()
    const launchId = newId()
    const launched = await launches.start(launchOptions(launchId, []))
    await until(() => isReady(launched.endpoint()))
    const running = stream(launched.endpoint()!, 300, 150)
    await running.began
    const killed = await box!.agents()
    expect(killed).not.toEqual([])
    for (const pid of killed) sendSignal(pid, 'SIGKILL')
    expect(await running.whole).toContain('[DONE]')
    await until(() => lists(launcher))
    expect((await launcher.list(signal())).map(one => one.launchId)).toEqual([launchId])
    expect(killed).not.toContain((await box!.agents())[0])
    expect(await isReady(launched.endpoint())).toBe(true)
  })

  test('stays for the streams of a server that leaves, and its end takes nothing from the next server', async () => {
    const dataDir = temporary()
    const options = { pool: 'box2', settings: box!.settings, dataDir, serverId: `server-${++count}`, log: keptLog() }
    // On a busy machine the first connection takes longer than the launcher waits for it.
    const open = async () => {
      const opened = await openSshLauncher({ ...options, ssh: box!.ssh, host: box!.host })
      await until(() => lists(opened))
      return opened
    }
    const [launchId, one] = [newId(), await open()]
    await one.start(launchOptions(launchId, []), signal())
    const endpointOf = async (launcher: Launcher) =>
      (await launcher.list(signal())).find(launch => launch.launchId === launchId)?.endpoint ?? undefined
    await until(async () => isReady(await endpointOf(one)))
    const running = stream((await endpointOf(one))!, 300, 150)
    await running.began
    await one.leave()
    const next = await open()
    onTestFinished(() => next.close())
    const endpoint = await endpointOf(next)
    expect(await running.whole).toContain('[DONE]')
    await one.close()
    expect(await isReady(endpoint)).toBe(true)
  })

  test('without a socket for one engine serves the others, and that one as soon as it can be made', async () => {
    const dataDir = temporary()
    const { launches, launcher, log } = await openServer(dataDir)
    const [first, second] = [newId(), newId()]
    const known = await launches.start(launchOptions(first, []))
    await until(() => isReady(known.endpoint()))
    const obstacle = join(socketFolder(dataDir, 'box2'), second.slice(-18))
    mkdirSync(obstacle)
    const launched = await launches.start(launchOptions(second, []))
    const listed = await launcher.list(signal())
    expect(new Map(listed.map(one => [one.launchId, one.endpoint]))).toEqual(
      new Map([
        [first, { ...known.endpoint(), generation: 1 }],
        [second, null],
      ]),
    )
    expect(log.lines.join()).toContain('The socket of an engine on another machine cannot be made yet')
    rmSync(obstacle, { recursive: true })
    await until(() => isReady(launched.endpoint()))
    for (const launchId of [first, second]) await launches.stop(launchId, 0)
  })

  test('that fails at first is made later, and the reason is said', async () => {
    await box!.stop()
    const { launcher, log } = await openServer()
    await expect(launcher.list(signal())).rejects.toThrow(/cannot be reached: .*Connection refused/)
    await expect(launcher.capacity(signal())).rejects.toThrow(/Connection refused/)
    expect(log.lines.filter(line => line.includes("The machine of the pool 'box2' cannot be used now"))).toHaveLength(1)
    const heard = new Promise<void>(resolve => launcher.watch(() => void lists(launcher).then(ok => ok && resolve())))
    await box!.start()
    await heard
    expect(await launcher.list(signal())).toEqual([])
  })

  test('is refused to a machine with another key, and to one that knows no key of this user', async () => {
    box!.makeKey('other')
    box!.know('other')
    const changed = await openServer()
    await expect(changed.launcher.list(signal())).rejects.toThrow(/is not the one that ssh knows/)
    writeFileSync(join(box!.folder, 'known'), '')
    const unknown = await openServer()
    await expect(unknown.launcher.list(signal())).rejects.toThrow(/is not known to ssh yet/)
    box!.know('host')
    const refused = await openServer(temporary(), { identity_file: join(box!.folder, 'other') })
    await expect(refused.launcher.list(signal())).rejects.toThrow(/accepts no key of this user/)
  })

  test('shows the engines of one server to that server only, and nothing of it stays', async () => {
    const pools = join(box!.cache, 'infer/pools')
    const before = new Set(existsSync(pools) ? readdirSync(pools) : [])
    const one = await openServer()
    const own = readdirSync(pools).filter(name => !before.has(name))
    expect(own).toHaveLength(1)
    const other = await openServer()
    const launchId = newId()
    await one.launches.start(launchOptions(launchId, []))
    expect(await other.launcher.list(signal())).toEqual([])
    await one.launches.close()
    expect(await survivors(launchId)).toEqual([])
    await until(() => !existsSync(join(pools, own[0]!)))
  })

  test.skipIf(!hasMounts())('brings the files of a model once', async () => {
    const dataDir = temporary()
    const apart = await openBox(dataDir)
    onTestFinished(() => apart.close())
    const here = join(dataDir, 'model.gguf')
    writeFileSync(here, Buffer.alloc(3 << 20, 7))
    const { launches } = await openServer(dataDir, {}, apart)
    const script = 'console.log(process.argv[1], require("node:fs").statSync(process.argv[1]).size)'
    const start = async () => {
      const launchId = newId()
      const argv = [process.execPath, '-e', script, here]
      const launched = await launches.start(
        launchOptions(launchId, [], { argv, sandbox: { ...unconfined, read: [here] } }),
      )
      const waited = launched.waits()
      expect(await launched.exited).toMatchObject({ status: '0' })
      return { waited, printed: launches.logs(launchId).join() }
    }
    const first = await start()
    expect(first.waited).toMatch(/being copied to '127.0.0.1'/)
    expect(first.printed).toMatch(/cache\/infer\/models\/\w{16}\/model\.gguf 3145728$/)
    const second = await start()
    expect(second.waited).toBeNull()
    expect(second.printed).toBe(first.printed)
  })

  test.skipIf(!hasMounts())('lets the machine download the files of a hub itself, else copies them', async () => {
    const hub = await openHub({ 'o/m': { files: { 'm.gguf': randomBytes(2 << 20) } } })
    onTestFinished(() => hub.close())
    const dataDir = temporary()
    const commit = hub.commitOf('o/m')
    const settings = { endpoint: hub.endpoint, cache: join(dataDir, 'hub'), token: undefined, offline: false }
    const reference = { repository: 'o/m', revision: 'main', file: null }
    await pullModel(reference, { hub: settings, signal: signal(), onEvent() {} })
    const folder = join(dataDir, 'hub/models--o--m')
    const script = 'console.log(process.argv[1], require("node:fs").statSync(process.argv[1]).size)'
    const argv = [process.execPath, '-e', script, `${folder}/snapshots/${commit}/m.gguf`]
    const apart = await openBox(dataDir)
    onTestFinished(() => apart.close())
    const load = async (endpoint: string) => {
      const host = { ...apart.host, HF_ENDPOINT: endpoint }
      const { launches } = await openServer(dataDir, {}, { ...apart, host })
      const launched = await launches.start(
        launchOptions(newId(), [], { argv, sandbox: { ...unconfined, read: [folder] } }),
      )
      expect(await launched.exited).toMatchObject({ status: '0' })
      return launches.logs(launched.launchId).join()
    }
    const before = hub.requests.length
    expect(await load(hub.endpoint)).toMatch(
      /cache\/infer\/models\/hub\/models--o--m\/snapshots\/\w{40}\/m\.gguf 2097152$/,
    )
    expect(hub.requests.slice(before).filter(one => one.at === 'store')).toHaveLength(1)
    rmSync(join(apart.cache, 'infer/models'), { recursive: true })
    const copied = await load('http://127.0.0.1:1')
    expect(copied).toMatch(/cache\/infer\/models\/\w{16}\/models--o--m\/snapshots\/\w{40}\/m\.gguf 2097152$/)
  })
})

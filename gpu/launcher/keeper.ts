import type { KeyObject } from 'node:crypto'
import type { Socket } from 'node:net'
import { type ProcessEnd, spawnChild } from './child.ts'
import { messageFrame, openFrameReader, outputFrame } from './keeper-frames.ts'
import { isProof, keeperProtocol, newNonce, proofOf } from './keeper-proof.ts'
import { sendSignal } from './processes.ts'
import { endAll } from './reap.ts'

/** Bytes of the end of an engine's output that are kept for the next server. */
const keptOutput = 64 << 10
/** Bytes that may wait for a server that does not read. Then engines wait, and after `lagMs` their output is dropped. */
const mostWaiting = 1 << 20
const lagMs = 1_000
/** Bytes of a frame of a client that has proved nothing yet; how long it may take, milliseconds; and how many there may be. */
const stranger = { bytes: 1_024, ms: 5_000, most: 16 }
/** Milliseconds in which all processes of the engines are ended. */
const endMs = 1_800

interface Kept {
  launchId: string
  pid: number
  /** What the server that started it wants the next one to know: of the launch, and of the ready engine. */
  about: unknown
  note: unknown
  /** `before`: the number of bytes printed before those that are kept. */
  output: { chunks: Buffer[]; bytes: number; before: number }
  flow: (flows: boolean) => void
  end: ProcessEnd | undefined
}

interface Owner {
  socket: Socket
  /** Bytes of output that it did not get, because it did not read. */
  dropped: number
  /** More waits for it than may, and it has not read all of that yet. */
  lags: boolean
}

/**
 * The parent of all engines of a data directory. One server at a time owns them: it starts them, and gets their output and
 * their ends. When it is gone without having ended them, they live on for the grace that it named, for the next server that
 * proves the key. Then, or on `end`, all their processes are killed and `exit` is called.
 */
export function openKeeper({ key, exit }: { key: KeyObject; exit: () => void }) {
  const launches = new Map<string, Kept>()
  let owner: Owner | undefined
  /** Servers that have proved the key and wait until the owner is gone. */
  const successors: { socket: Socket; graceMs: number }[] = []
  /** Processes that are being started. */
  const starting = new Set<Promise<void>>()
  let strangers = 0
  let graceMs = 0
  let deadline: NodeJS.Timeout | undefined
  let ending = false

  function send(message: object): void {
    owner?.socket.write(messageFrame(message))
  }

  /** Forwards output without growing: a server that lags makes engines wait for a second, and then loses output. */
  function forward(launchId: string, chunk: Buffer): void {
    if (!owner) return
    const { socket } = owner
    if (socket.writableLength < mostWaiting) {
      socket.write(outputFrame(launchId, chunk))
      if (socket.writableLength >= mostWaiting && !owner.lags) lag(owner)
    } else owner.dropped += chunk.length
  }

  function lag(lagging: Owner): void {
    lagging.lags = true
    setFlow(false)
    const resume = () => setFlow(true)
    const timer = setTimeout(resume, lagMs)
    lagging.socket.once('drain', () => {
      lagging.lags = false
      clearTimeout(timer)
      resume()
      if (lagging.dropped > 0 && lagging === owner) send({ type: 'dropped', bytes: lagging.dropped })
      lagging.dropped = 0
    })
  }

  /** Lets engines print, or makes them wait. */
  function setFlow(flows: boolean): void {
    for (const kept of launches.values()) kept.flow(flows)
  }

  function keepOutput({ output }: Kept, chunk: Buffer): void {
    output.chunks.push(Buffer.from(chunk))
    output.bytes += chunk.length
    while (output.chunks.length > 1 && output.bytes - output.chunks[0]!.length >= keptOutput) {
      const { length } = output.chunks.shift()!
      output.bytes -= length
      output.before += length
    }
    // Engines print many short lines: each piece costs more than its bytes.
    if (output.chunks.length > 256) output.chunks = [Buffer.concat(output.chunks)]
  }

  async function start(message: Record<string, unknown>): Promise<void> {
    const { launchId, file, args, env, cwd, about } = message as unknown as StartMessage
    const kept: Kept = {
      launchId,
      pid: 0,
      about,
      note: null,
      output: { chunks: [], bytes: 0, before: 0 },
      flow: () => {},
      end: undefined,
    }
    const child = await spawnChild({ file, args, env, cwd })
    if (typeof child === 'string') return send({ type: 'refused', launchId, reason: child })
    kept.pid = child.pid
    kept.flow = child.flow
    launches.set(launchId, kept)
    send({ type: 'started', launchId, pid: child.pid })
    child.read(chunk => {
      keepOutput(kept, chunk)
      forward(launchId, chunk)
    })
    if (ending) sendSignal(-child.pid, 'SIGKILL')
    void child.ended.then(end => {
      kept.end = end
      if (owner) report(kept)
      else if (![...launches.values()].some(one => !one.end)) void endKeeper()
    })
  }

  function begin(message: Record<string, unknown>): void {
    const begun = start(message).finally(() => starting.delete(begun))
    starting.add(begun)
  }

  /** Lets the owner go once it knows what it has started: nobody would end what no server has heard of. */
  async function release(socket: Socket): Promise<void> {
    await Promise.all(starting)
    if (owner?.socket !== socket) return
    socket.end()
    lose()
  }

  function report(kept: Kept): void {
    send({ type: 'ended', launchId: kept.launchId, ...kept.end })
    launches.delete(kept.launchId)
  }

  function own(socket: Socket, grace: number): void {
    clearTimeout(deadline)
    owner = { socket, dropped: 0, lags: false }
    graceMs = grace
    const kept = [...launches.values()]
    send({
      type: 'owner',
      pid: process.pid,
      launches: kept.map(({ launchId, pid, about, note, output }) => ({
        launchId,
        pid,
        about,
        note,
        printed: output.before,
      })),
    })
    for (const { launchId, output } of kept)
      for (const chunk of output.chunks) socket.write(outputFrame(launchId, chunk))
    for (const one of kept) if (one.end) report(one)
    setFlow(true)
  }

  /** The owner is gone, or has let go. */
  function lose(): void {
    owner = undefined
    setFlow(true)
    const next = successors.shift()
    if (next) return own(next.socket, next.graceMs)
    if (ending) return
    if (![...launches.values()].some(one => !one.end)) return void endKeeper()
    deadline = setTimeout(() => void endKeeper(), graceMs)
  }

  /** Kills every process of every engine, then ends this process. */
  async function endKeeper(): Promise<void> {
    if (ending) return
    ending = true
    const alive = [...launches.values()].filter(({ end }) => !end)
    for (const { pid } of alive) {
      sendSignal(-pid, 'SIGKILL')
      sendSignal(pid, 'SIGKILL')
    }
    // Without a PID namespace their descendants in other sessions are found by their environment.
    if (alive.length > 0)
      await endAll({ INFER_LAUNCH_ID: new Set(alive.map(({ launchId }) => launchId)) }, endMs).catch(() => {})
    exit()
  }

  function command(message: Record<string, unknown>, socket: Socket): void {
    switch (message.type) {
      case 'start':
        return begin(message)
      case 'note': {
        const kept = launches.get(String(message.launchId))
        if (kept) kept.note = message.note
        return
      }
      case 'release':
        return void release(socket)
      case 'end':
        return void endKeeper()
    }
  }

  return {
    /** A client has connected. It gets nothing before it has proved the key. */
    accept(socket: Socket): void {
      socket.on('error', () => {})
      if (strangers >= stranger.most) return void socket.destroy()
      strangers++
      let proved = false
      const nonce = newNonce()
      const known = () => {
        if (proved) return
        strangers--
        proved = true
        clearTimeout(tooSlow)
      }
      const tooSlow = setTimeout(() => socket.destroy(), stranger.ms)
      const read = openFrameReader(
        {
          message(message) {
            if (proved) {
              if (owner?.socket === socket) command(message, socket)
              return
            }
            if (message.type === 'hello' && message.protocol === keeperProtocol && typeof message.nonce === 'string') {
              const proof = proofOf(key, 'keeper', message.nonce)
              return void socket.write(messageFrame({ type: 'challenge', nonce, proof }))
            }
            const grace = Number(message.graceMs)
            if (message.type !== 'prove' || !isProof(key, 'server', nonce, message.proof) || !(grace >= 0))
              return void socket.destroy()
            known()
            if (owner || ending) successors.push({ socket, graceMs: grace })
            else own(socket, grace)
          },
        },
        () => (proved ? 16 << 20 : stranger.bytes),
      )
      socket.on('data', piece => {
        try {
          read(piece)
        } catch {
          socket.destroy()
        }
      })
      socket.on('close', () => {
        known()
        const at = successors.findIndex(one => one.socket === socket)
        if (at >= 0) successors.splice(at, 1)
        if (owner?.socket === socket) lose()
      })
    },
    end: endKeeper,
    /** Ends this process if no server has connected after this time. */
    expect(ms: number): void {
      deadline = setTimeout(() => void endKeeper(), ms)
    },
  }
}

interface StartMessage {
  launchId: string
  file: string
  args: readonly string[]
  env: Record<string, string>
  cwd: string
  about: unknown
}

import { connect } from 'node:tls'
import { tlsOptions } from './endpoint-tls.ts'
import type { EndpointTls } from './launcher.ts'

/** The name of the wrapper's own protocol: lines of JSON, each answered by one. */
const protocol = 'infer-control'
const connectMs = 10_000
/** Milliseconds in which a wrapper must answer that may not be there any more. */
const checkMs = 2_000

/** A connection to the wrapper of an engine. It tells the wrapper that its server is there, and closes when the engine has ended. */
export interface Control {
  /** Has the engine end, and killed after `graceMs`. Resolves with whether the wrapper has accepted that. */
  stop(graceMs: number, signal: AbortSignal): Promise<boolean>
  /** Closes the connection unless the wrapper answers within `checkMs`. */
  check(): void
  close(): void
}

export interface ControlOptions {
  address: { host: string; port: number }
  tls: EndpointTls
  /** Milliseconds between two words to the wrapper. */
  beatMs: number
  /** Called when the wrapper has answered. */
  heard?: () => void
  /**
   * Called once, when it was closed by the other side; `wasReached` is false if it could not be opened, and `code` says then how
   * that failed.
   */
  closed: (wasReached: boolean, code?: string) => void
}

export function openControl({ address, tls, beatMs, heard, closed }: ControlOptions): Control {
  const socket = connect({ ...address, ...tlsOptions(tls), ALPNProtocols: [protocol] })
  /** Those who wait for the answer to a line, oldest first. */
  const waiting: ((accepted: boolean) => void)[] = []
  let isOpen = true
  let wasReached = false
  let answers = ''
  let code: string | undefined
  let checking: NodeJS.Timeout | undefined

  const send = (message: object): Promise<boolean> => {
    if (!isOpen) return Promise.resolve(false)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    waiting.push(resolve)
    socket.write(`${JSON.stringify(message)}\n`)
    return promise
  }
  const beat = () => {
    // A wrapper that does not answer before the next beat cannot be reached any more.
    if (waiting.length > 0) return void socket.destroy()
    void send({})
  }

  socket.setTimeout(connectMs, () => socket.destroy())
  socket.on('secureConnect', () => socket.setTimeout(0))
  socket.once('data', () => (wasReached = true))
  socket.on('data', (data: Buffer) => {
    answers += data.toString('latin1')
    const lines = answers.split('\n')
    answers = lines.pop()!
    for (let count = lines.length; count > 0; count--) waiting.shift()?.(true)
    clearTimeout(checking)
    checking = undefined
    heard?.()
  })
  socket.on('error', (error: NodeJS.ErrnoException) => (code = error.code))
  const timer = setInterval(beat, beatMs)
  timer.unref()
  socket.unref()
  socket.once('close', () => {
    clearInterval(timer)
    clearTimeout(checking)
    const wasOpen = isOpen
    isOpen = false
    for (const answer of waiting.splice(0)) answer(false)
    if (wasOpen) closed(wasReached, code)
  })
  void send({})

  return {
    async stop(graceMs, signal) {
      const aborted = Promise.withResolvers<boolean>()
      const abort = () => aborted.resolve(false)
      signal.addEventListener('abort', abort)
      try {
        return await Promise.race([send({ stop: graceMs }), aborted.promise])
      } finally {
        signal.removeEventListener('abort', abort)
      }
    },
    check() {
      // One that is being opened is judged by that.
      if (checking || !wasReached) return
      checking = setTimeout(() => socket.destroy(), checkMs)
      checking.unref()
      void send({})
    },
    close() {
      isOpen = false
      socket.destroy()
    },
  }
}

import { writeSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Command, Option } from '@commander-js/extra-typings'
import { packaged, version } from '../../core/assets.ts'
import { dataDirectory, hostEnvironment } from '../../core/config.ts'
import { type Log, type LogLevel, openLog } from '../../core/log.ts'
import { startThread } from '../../core/store/sqlite/thread.ts'
import { selfSignedFiles } from '../../server/http/connection/certificate.ts'
import { runningServer } from '../client/find-server.ts'
import { greeting, plainGreeting } from '../serve/greeting.ts'
import { startedInTerminal } from '../serve/hangup.ts'
import { lanAddress, openBrowser } from '../serve/lan-address.ts'
import { logLine } from '../serve/log-line.ts'
import { ownCommand } from '../serve/try-next.ts'
import type { App } from '../server/app.ts'
import type { AppOptions } from '../server/startup.ts'
import { tuneMemory } from '../server/tune-memory.ts'
import { notifyReady } from '../service/notify.ts'
import type { Predecessor } from '../takeover/predecessor.ts'
import type { ServeFlags } from '../takeover/protocol.ts'
import { replaceServer, thisProgram } from '../takeover/replace-server.ts'
import { exitCodes, failureOfThrown, usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type OptionsOf, readDuration, readListen, withDataDir, withExamples } from '../terminal/options.ts'
import { paintFor } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

const signalNumbers = { SIGINT: 2, SIGTERM: 15 } as const

const withServeOptions = (command: Command) =>
  withDataDir(command)
    .option('--config <path>', 'the configuration; default: infer.yaml in the data directory, if it exists')
    .option('--listen <address>', 'host:port to listen on, such as 0.0.0.0:8787', readListen)
    .option('--https', 'use HTTPS, with a self-signed certificate in the data directory unless --cert is given')
    .option('--cert <file>', 'the certificate for HTTPS, PEM, with its chain; read again on SIGHUP')
    .option('--key <file>', 'the private key of the certificate, PEM, not encrypted')
    .option('--open', 'open the console in a browser, signed in')
    .option('--qr', 'print the address for other machines as a QR code')
    .option('--takeover', 'take the place of the running server without interrupting its requests')
    .addOption(new Option('--predecessor <start>', 'what the server before has passed').hideHelp())
    .option('--no-starter', 'do not offer to download a small real model, or the backend for GPUs')
    .option(
      '--drain-timeout <time>',
      'how long running requests may take to finish after SIGTERM, such as 60s',
      readDuration,
    )
    .addOption(
      new Option('--log-level <level>', 'minimum level to log; default: warn in a terminal, else info').choices([
        'debug',
        'info',
        'warn',
        'error',
      ]),
    )

type ServeOptions = OptionsOf<typeof withServeOptions>

/**
 * `infer serve`: runs until a signal ends it. The first SIGTERM or SIGINT drains, the second ends at once. On SIGHUP a
 * server that was started in a terminal drains, because the terminal was closed; any other server reads infer.yaml
 * again.
 */
export function define(command: Command, terminal: Terminal): void {
  withServeOptions(command).action(options => serve(options, terminal))
  withExamples(command, [
    ['infer serve', 'on 127.0.0.1:8787, with the models in infer.yaml'],
    ['infer serve --listen 127.0.0.1:9000', 'on another port'],
    ['infer serve --listen 0.0.0.0:8787 --https', 'for other machines, encrypted'],
    ['infer serve --data-dir /var/lib/infer --config /etc/infer.yaml', 'as a service'],
    ['nohup infer serve > infer.log &', 'keep running when the terminal closes'],
  ])
}

async function serve(options: ServeOptions, terminal: Terminal): Promise<void> {
  const dataDir = dataDirectory(options.dataDir)
  if (options.takeover) {
    const running = runningServer(dataDir)
    if (running) return replaceServer({ dataDir, pid: running.pid, flags: serveFlags(options) }, terminal)
  }
  if (options.predecessor === undefined) return serveFrom(dataDir, options, terminal, undefined)
  const { openPredecessor, readBegin } = await import('../takeover/predecessor.ts')
  const predecessor = openPredecessor(readBegin(options.predecessor))
  try {
    await serveFrom(dataDir, options, terminal, predecessor)
  } catch (thrown) {
    predecessor.failed(failureOfThrown(thrown).message)
    throw thrown
  }
}

async function serveFrom(
  dataDir: string,
  options: ServeOptions,
  terminal: Terminal,
  predecessor: Predecessor | undefined,
): Promise<void> {
  const https = httpsOf(options)
  const own = ownCommand({
    packaged,
    argv0: process.argv0,
    script: process.argv[1] ?? '',
    dataDir: dataDir === dataDirectory() ? undefined : dataDir,
  })
  if (terminal.interactive && options.starter) {
    if (!(await offerBackend(dataDir, own.line('engine setup gpu'), terminal))) return
    const { offerStarter } = await import('../models/offer-starter.ts')
    if (!(await offerStarter({ dataDir, configPath: options.config, own }, terminal))) return
  }
  const log = openServerLog(options.logLevel, terminal)
  const abrupt = Promise.withResolvers<{ exitCode: number }>()
  let stopping = false
  let close: (() => Promise<void>) | undefined
  let reload: (() => Promise<void>) | undefined

  const inTerminal = startedInTerminal()
  const stop = (signal: keyof typeof signalNumbers) => {
    if (stopping) {
      log.warn('Stopping at once, because a second signal arrived')
      abrupt.resolve({ exitCode: 128 + signalNumbers[signal] })
      return
    }
    stopping = true
    if (terminal.isTerminal) terminal.remark('\nFinishing running requests. Press Ctrl-C again to stop at once.')
    void end()
  }
  const end = () =>
    close?.().catch((cause: unknown) => {
      log.error('Stopping failed', {}, cause)
      abrupt.resolve({ exitCode: exitCodes.internal })
    })
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))
  process.on('SIGHUP', () => {
    if (!inTerminal) void reload?.()
    // The kernel and the shell may both send SIGHUP: a second one does not end the drain.
    else if (!stopping) {
      log.info('The terminal was closed, so the server ends')
      stop('SIGTERM')
    }
  })
  // After an unexpected error the state in memory is unreliable. Everything that was acknowledged is on disk.
  process.on('uncaughtException', cause => {
    log.error('The server ends because of an unexpected error', {}, cause)
    abrupt.resolve({ exitCode: exitCodes.internal })
  })

  // To save time, the thread starts and opens the store while the rest of the program loads.
  const appOptions = {
    dataDir,
    configPath: options.config,
    listen: options.listen,
    drainTimeoutMs: options.drainTimeout,
    https,
    storeThread: startThread(),
    predecessor,
    log,
  }
  const { beginStartup } = await import('../server/startup.ts')
  const startup = beginStartup(appOptions)
  const { openApp } = await import('../server/app.ts')
  const opening = openApp(appOptions, startup)
  const app = await Promise.race([opening, abrupt.promise])
  if ('exitCode' in app) {
    terminal.setExitCode(app.exitCode)
    return
  }
  tuneMemory()
  const control = app.openTakeover({ program: thisProgram(), flags: serveFlags(options) })
  const notified = notifyReady(hostEnvironment(), process.pid, log)
  if (predecessor)
    letEnd(predecessor, notified, () => {
      if (stopping) return
      log.error(
        'The server before ended before systemd knew this one, so this one ends: systemd starts the service again',
      )
      abrupt.resolve({ exitCode: exitCodes.internal })
    })
  close = () => app.close()
  reload = () => app.reload()
  if (stopping) void end()
  else {
    const { defaultModels } = await import('../../core/models/defaults.ts')
    const toys = new Set(defaultModels().map(({ id }) => id))
    const started = {
      version,
      own,
      url: app.url,
      urls: app.urls,
      trust: https && !https.files ? selfSignedFiles(dataDir).cert : undefined,
      // A link with a code must not end in the log of a service.
      consoleLink: terminal.isTerminal ? app.consoleLink(app.publicUrl ?? lanAddress(app.urls)) : undefined,
      tokenPath: join(dataDir, 'root-token'),
      firstStart: app.firstStart,
      models: app.models,
      onlyToys: app.models.every(({ id }) => toys.has(id)),
    }
    terminal.print(
      terminal.isTerminal ? greeting(started, terminal.paint, terminal.stdout.columns || 80) : plainGreeting(started),
    )
  }
  if (!stopping) void showAddress(options, app, terminal)
  if (!terminal.interactive || !options.starter) void logUnusedCards(dataDir, log)
  const { exitCode } = await Promise.race([app.stopped, abrupt.promise])
  control?.close()
  terminal.setExitCode(exitCode)
}

/**
 * Lets the server before end when systemd knows this one. Calls `unknown` if it ended earlier: for systemd the service has
 * failed then, and the data directory must be free when it starts another server.
 */
function letEnd(predecessor: Predecessor, notified: Promise<void>, unknown: () => void): void {
  let isKnown = hostEnvironment().NOTIFY_SOCKET === undefined
  void notified.then(() => {
    isKnown = true
    predecessor.settled()
  })
  void predecessor.gone.then(() => isKnown || unknown())
}

/** Reads the options that a server which takes over inherits. */
const serveFlags = (options: ServeOptions): ServeFlags => ({
  ...(options.config === undefined ? {} : { config: resolve(options.config) }),
  ...(options.listen === undefined ? {} : { listen: options.listen }),
  ...(options.https ? { https: true } : {}),
  ...(options.cert === undefined ? {} : { cert: resolve(options.cert) }),
  ...(options.key === undefined ? {} : { key: resolve(options.key) }),
  ...(options.drainTimeout === undefined ? {} : { drainTimeout: options.drainTimeout }),
  ...(options.logLevel === undefined ? {} : { logLevel: options.logLevel }),
})

/** Offers the backend for GPUs. Resolves with whether to start the server; false after Ctrl-C. */
async function offerBackend(dataDir: string, command: string, terminal: Terminal): Promise<boolean> {
  const { offerGpu } = await import('../engines/offer-gpu.ts')
  let starts = false
  await interruptible(terminal, async signal => {
    await offerGpu({ dataDir, command }, terminal, signal)
    signal.throwIfAborted()
    starts = true
  })
  return starts
}

async function logUnusedCards(dataDir: string, log: Log): Promise<void> {
  const { unusedCards } = await import('../engines/offer-gpu.ts')
  const sentence = await unusedCards(dataDir)
  if (sentence !== null) log.warn(sentence)
}

/** Reads `--https`, `--cert` and `--key`. Throws usage if only one of `--cert` and `--key` is given. */
function httpsOf({ https, cert, key }: ServeOptions): AppOptions['https'] {
  if (cert === undefined && key === undefined) return https ? { files: undefined } : undefined
  if (cert === undefined || key === undefined)
    throw usageFailure('--cert and --key belong together. Give both, or only --https for a self-signed certificate.')
  return { files: { cert: resolve(cert), key: resolve(key) } }
}

/** Handles `--qr` and `--open`. A failure is only a remark, because the server runs. */
async function showAddress(
  options: ServeOptions,
  { urls, consoleLink }: Pick<App, 'urls' | 'consoleLink'>,
  terminal: Terminal,
): Promise<void> {
  if (options.qr) {
    const { qrCode } = await import('../serve/qr-code.ts')
    const code = qrCode(urls)
    if (code === undefined)
      terminal.remark(`Other machines cannot reach ${urls[0]}, so there is no QR code. Use --listen 0.0.0.0:8787.`)
    else terminal.print(code)
  }
  if (options.open) {
    const reason = await openBrowser(consoleLink() ?? `${urls[0]}/docs`)
    if (reason !== undefined) terminal.remark(`No browser was opened, because ${reason}. Open ${urls[0]} yourself.`)
  }
}

/**
 * Opens the log: readable lines in a terminal, else JSON lines. Lines are written synchronously, because the last line
 * before a crash matters most.
 */
function openServerLog(level: LogLevel | undefined, terminal: Terminal) {
  if (!terminal.stderr.isTTY) return openLog(level ?? 'info')
  const paint = paintFor(true)
  return openLog(level ?? 'warn', line => writeSync(2, logLine(line, paint)))
}

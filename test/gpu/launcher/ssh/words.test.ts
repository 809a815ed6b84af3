import { describe, expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { greetingIn, greetingOf, receivedFailure, sentFailure } from '../../../../gpu/launcher/ssh/agent-frames.ts'
import { retryMs } from '../../../../gpu/launcher/ssh/link.ts'
import { pathsOf } from '../../../../gpu/launcher/ssh/model-files.ts'
import { backendThere, locatedLaunch, portableLaunch } from '../../../../gpu/launcher/ssh/portable-launch.ts'
import { connectArguments, quoted } from '../../../../gpu/launcher/ssh/ssh-command.ts'
import { sshFault } from '../../../../gpu/launcher/ssh/ssh-fault.ts'
import { unconfined } from '../../../../gpu/sandbox/level.ts'
import { launchOptions } from '../_launch.ts'

describe('errors of ssh become sentences', () => {
  const box = { host: 'me@box', port: 2222 }
  test.each([
    ['@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.', 'is not the one that ssh'],
    ['Host key verification failed.', 'is not known to ssh yet. Connect once by hand: ssh -p 2222 me@box.'],
    ['me@box: Permission denied (publickey).', 'accepts no key of this user'],
    ['ssh: Could not resolve hostname box: Name or service not known', "Correct 'host' of the pool"],
    ['ssh: connect to host box port 2222: Connection refused', 'cannot be reached: ssh: connect to host box port 2222'],
    ['Timeout, server box not responding.', "'me@box' cannot be reached: Timeout, server box not responding."],
    ['channel 3: open failed: administratively prohibited: open failed', 'AllowStreamLocalForwarding'],
    ['', "The connection to 'me@box' has ended. Check: ssh -p 2222 me@box."],
    ['something new.\n', "The connection to 'me@box' has ended: something new. Check:"],
  ])('%j', (text, sentence) => expect(sshFault(box, text)).toContain(sentence))
})

test('a connection asks for nothing, and a host is no option', () => {
  const args = connectArguments({ host: 'box', port: 22, identity_file: '~/.ssh/k' }, '/c', 'true')
  expect(args).toContain('BatchMode=yes')
  expect(args.slice(-3)).toEqual(['--', 'box', 'true'])
})

test('a word of a shell stays one word', () => expect(quoted("it's $HOME")).toBe(String.raw`'it'\''s $HOME'`))

test('a greeting is found after what a login shell prints', () => {
  const bytes = Buffer.concat([Buffer.from('welcome\n'), Buffer.from(greetingOf('0.1.0')), Buffer.of(0, 1)])
  expect(greetingIn(bytes.subarray(0, 20))).toBeUndefined()
  expect(greetingIn(bytes)).toEqual({ protocol: 1, version: '0.1.0', rest: Buffer.of(0, 1) })
})

test('only a Failure that was sent says that nothing was changed', () => {
  const refused = receivedFailure(sentFailure(new Failure('worker_error', 'No.', { engineText: 'why' })))
  expect(refused).toMatchObject({ code: 'worker_error', message: 'No.', engineText: 'why' })
  expect(receivedFailure(sentFailure(new Error('lost')))).not.toBeInstanceOf(Failure)
})

test('attempts are 250 ms apart at first and 30 s later', () =>
  expect([0, 1, 3, 7, 50].map(retryMs)).toEqual([250, 500, 2_000, 30_000, 30_000]))

describe('a launch for another machine', () => {
  const own = { command: ['/usr/bin/node', '/opt/main.cjs'], files: ['/usr/bin/node', '/opt'] }
  const about = { own, dataDir: '/data', files: new Map([['/models/m.gguf', '/cache/m.gguf']]) }
  const launch = launchOptions('wkr_1-1', [], {
    argv: [...own.command, 'engine', 'gguf', '--model', '/models/m.gguf', '--backends', '/data/backends'],
    env: { INFER_CACHE_DIR: '/here', INFER_ENGINE_KEY: 'k' },
    sandbox: { ...unconfined, read: ['/models/m.gguf', ...own.files, '/etc/x'] },
  })

  const program = {
    command: ['/cache/infer'],
    files: ['/cache/infer', '/cache/files'],
    env: { MESA_SHADER_CACHE_DIR: '/cache/mesa' },
    backend: ['/backends/cuda', '/backends'],
  }

  test('of the built-in engine uses the backend there', () => {
    const argv = [...own.command, 'engine', 'gguf', '--gpu', 'cuda', '--backends', backendThere]
    const options = { ...launch, argv, sandbox: { ...unconfined, read: [backendThere] } }
    expect(pathsOf(options, own)).toEqual([])
    const moved = portableLaunch(options, about)
    const there = locatedLaunch(moved, program)
    expect(there.argv.join(' ')).toBe('/cache/infer engine gguf --gpu cuda --backends /backends/cuda')
    expect(there.env).toEqual({ INFER_ENGINE_KEY: 'k', MESA_SHADER_CACHE_DIR: '/cache/mesa' })
    expect(there.sandbox.read).toEqual(['/backends/cuda', '/backends'])
    expect(() => locatedLaunch(moved, { ...program, backend: [] })).toThrow(/can use its GPUs no more/)
    expect(locatedLaunch(launch, program).env).toEqual(launch.env)
  })

  test('names neither the program nor the folders of this one', () => {
    const moved = portableLaunch(launch, about)
    expect(moved.argv.join(' ')).toBe('{infer} engine gguf --model /cache/m.gguf --backends {data_directory}/backends')
    expect(moved.env).toEqual({ INFER_ENGINE_KEY: 'k' })
    expect(moved.sandbox.read).toEqual(['/cache/m.gguf', '/etc/x', '{infer}'])
    const there = locatedLaunch(moved, program)
    expect(there.argv.slice(0, 2)).toEqual(['/cache/infer', 'engine'])
    expect(there.sandbox.read).toEqual(['/cache/m.gguf', '/etc/x', '/cache/infer', '/cache/files'])
  })

  test('brings the files that its command names', () => expect(pathsOf(launch, own)).toEqual(['/models/m.gguf']))

  test('writes its files on that machine', () =>
    expect(portableLaunch({ ...launch, argv: ['python', '--output-directory', '{outputs}'] }, about).argv).toContain(
      '{outputs}',
    ))
})

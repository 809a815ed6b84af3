import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { shellWord } from '../../../cli/serve/try-next.ts'
import { entry, infer, temporaryFolder } from '../_infer.ts'
import { hasTerminal } from '../_terminal.ts'

const has = (shell: string) => spawnSync(shell, ['--version']).status === 0

/** A folder with a program `infer` on its PATH, a data directory with models, and some files. */
function home() {
  const folder = temporaryFolder()
  const program = join(folder, 'infer')
  writeFileSync(program, `#!/bin/sh\nexec ${shellWord(process.execPath)} ${shellWord(entry)} "$@"\n`)
  chmodSync(program, 0o755)
  mkdirSync(join(folder, 'data dir'))
  writeFileSync(join(folder, 'copy.db'), '')
  writeFileSync(
    join(folder, 'data dir', 'infer.yaml'),
    'models:\n  - { id: "qwen3:8b", engine: remote, url: "http://h/v1" }\n  - { id: "qwen3:30b", engine: remote, url: "http://h/v1" }\n  - { id: org/llama, engine: remote, url: "http://h/v1" }\n',
  )
  const env = {
    PATH: `${folder}:${process.env.PATH}`,
    HOME: folder,
    INFER_DATA_DIR: join(folder, 'data dir'),
    TERM: 'dumb',
  }
  return { folder, env }
}

describe.skipIf(!has('bash'))('bash', () => {
  let script: string
  beforeAll(async () => void (script = (await infer(['completion', 'bash'])).stdout))

  /**
   * The candidates after a line for Tab. Bash splits a typed line into words itself; this applies the rules of its
   * manual: it splits at blanks and at each character of COMP_WORDBREAKS, which becomes its own word.
   */
  function tab(line: string, at = home()): string[] {
    const words: string[] = line.match(/[^\s:=]+|[:=]/g) ?? []
    if (/\s$/.test(line)) words.push('')
    const lines = [
      script,
      `COMP_LINE=${shellWord(line)}; COMP_POINT=${line.length}`,
      `COMP_WORDS=(${words.map(word => (word === '' ? "''" : shellWord(word))).join(' ')}); COMP_CWORD=${words.length - 1}`,
      'compopt() { :; }',
      '_infer infer; printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', lines.join('\n')], {
      encoding: 'utf8',
      cwd: at.folder,
      env: at.env,
    })
    expect([status, stderr]).toEqual([0, ''])
    return stdout.split('\n').filter(found => found !== '')
  }

  test.each<[line: string, offered: string[]]>([
    ['infer serve --log-level=w', ['warn']],
    ['infer logs --source=', ['server', 'engine']],
    // The line already has the text before the colon.
    ['infer logs qwen3:', ['8b', '30b']],
    ['infer logs q', ['qwen3:8b', 'qwen3:30b']],
    ['infer restore copy', ['copy.db']],
    ['infer serve --data-dir da', ['data dir']],
    ['infer nonsense ', []],
  ])('%s', (line, offered) => expect(tab(line)).toEqual(offered))

  test('bash loads it', () => {
    const { env, folder } = home()
    const asked = 'source <(infer completion bash) && complete -p infer'
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', asked], { encoding: 'utf8', cwd: folder, env })
    expect({ stdout, stderr }).toEqual({ stdout: 'complete -F _infer infer\n', stderr: '' })
  })

  test.skipIf(!hasTerminal)('a person types, presses Tab and sees the whole id', async () => {
    const { env, folder } = home()
    const child = spawn('script', ['-qfec', 'bash --norc --noprofile -i', '/dev/null'], {
      cwd: folder,
      env: { ...env, TERM: 'xterm', PS1: 'next> ' },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let shown = ''
    child.stdout.on('data', piece => (shown += String(piece)))
    const sees = (text: string) => expect.poll(() => shown).toContain(text)
    await sees('next> ')
    child.stdin.write('source <(infer completion bash); echo lo""aded\n')
    await sees('loaded')
    child.stdin.write('infer logs or\t')
    await sees('infer logs org/llama ')
    child.stdin.write('\u0015infer logs qwen3:3\t')
    await sees('infer logs qwen3:30b ')
    child.stdin.write('\u0015exit\n')
    await once(child, 'close')
  })
})

describe.skipIf(!has('zsh'))('zsh', () => {
  test('reads the script', async () => {
    const { stdout } = await infer(['completion', 'zsh'])
    expect(spawnSync('zsh', ['-n', '-c', stdout], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  })
})

describe.skipIf(!has('fish'))('fish', () => {
  test('offers models after a command', async () => {
    const { env, folder } = home()
    const { stdout } = await infer(['completion', 'fish'])
    const asked = `${stdout}\ncomplete -C 'infer logs org'`
    const ran = spawnSync('fish', ['--no-config', '-c', asked], { encoding: 'utf8', cwd: folder, env })
    expect(ran.stdout.trim().split('\t')[0]).toBe('org/llama')
  })
})

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { root } from '../bundle.ts'
import { recordingSvg, type SvgPiece } from './svg.ts'

/** Records the packed executable in a terminal, in an empty home, and writes the image in the README. */
const output = join(root, 'server/docs/recording.svg')
const columns = 96
/** bash writes this before its prompt; terminals show nothing of it. */
const ready = '\u001b]0;ready\u0007'

const workflow = `name: Story
parameters:
  topic: { type: string, default: a cat that jumps }
dag:
  nodes:
    write:
      model_id: infer/tiny-chat
      task: std/chat-completion
      inputs:
        messages: [{ role: user, content: 'Tell a story about \${input.topic}.' }]
        max_tokens: 12
      outputs: ['choices[0].message.content']
    draw:
      model_id: infer/demo
      task: slug/text-to-image
      inputs: { prompt: '\${nodes.write.result.choices[0].message.content}' }
    speak:
      model_id: infer/tiny-speech
      task: std/audio-speech
      inputs: { input: '\${nodes.write.result.choices[0].message.content}', voice: alto, speed: 2 }
`
const commands = [
  'infer serve > serve.log 2>&1 &',
  'infer run infer/tiny-chat "What are you?"',
  'infer run demo/text-to-image "a cat" --out cat.png',
  'infer workflow run story.yaml --param topic="a dog that swims"',
  'infer job list',
]

const executable = join(root, 'build/infer')
if (!existsSync(executable)) throw new Error('build/infer is missing. Run: npm run pack')
const home = mkdtempSync(join(tmpdir(), 'demo-'))
try {
  const pieces = await record()
  writeFileSync(output, recordingSvg(pieces, columns))
  process.stdout.write(
    `server/docs/recording.svg: ${commands.length} commands, ${(pieces.at(-1)!.at / 1000).toFixed(1)} s\n`,
  )
} finally {
  rmSync(home, { recursive: true, force: true })
}

async function record(): Promise<SvgPiece[]> {
  const programs = join(home, '.programs')
  mkdirSync(programs)
  symlinkSync(executable, join(programs, 'infer'))
  writeFileSync(join(home, 'story.yaml'), workflow)
  const shell: ChildProcess = spawn(
    'script',
    ['-qfec', `stty cols ${columns} rows 50; exec bash --noprofile --norc`, '/dev/null'],
    {
      cwd: home,
      env: {
        HOME: home,
        PATH: `${programs}:${process.env.PATH ?? ''}`,
        TERM: 'xterm-256color',
        LANG: 'C.UTF-8',
        PS1: `\\[\u001b]0;ready\u0007\\]\\[\u001b[32m\\]$\\[\u001b[0m\\] `,
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  const began = performance.now()
  const pieces: SvgPiece[] = []
  let text = ''
  shell.stdout!.setEncoding('utf8').on('data', (piece: string) => {
    text += piece
    pieces.push({ at: performance.now() - began, text: piece })
    shell.emit('written')
  })
  const prompts = () => text.split(ready).length - 1
  const until = async (count: number) => {
    while (prompts() < count) await once(shell, 'written')
  }
  const type = async (command: string) => {
    for (const part of command.match(/\S+\s*/g) ?? []) {
      shell.stdin!.write(part)
      await delay(120)
    }
    shell.stdin!.write('\n')
  }

  await until(1)
  for (const [at, command] of commands.entries()) {
    await type(command)
    await until(at + 2)
    if (at === 0) await serverReady()
    await delay(400)
  }
  const seen = pieces.length
  shell.stdin!.write('kill %1; wait; exit\n')
  await once(shell, 'close')
  // Leaves out the message of job control about the background process.
  return pieces.slice(0, seen)
}

async function serverReady(): Promise<void> {
  const path = join(home, '.local/share/infer/root-token')
  for (let tries = 0; !existsSync(path) && tries < 200; tries++) await delay(50)
  await delay(500)
}

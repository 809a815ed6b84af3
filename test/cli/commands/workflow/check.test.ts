import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { infer, temporaryFolder } from '../../_infer.ts'

const flow = `name: Spoken
parameters:
  topic: { type: string }
dag:
  nodes:
    write:
      model_id: infer/tiny-chta
      task: std/chat-completion
      inputs:
        messages: [{ role: user, content: 'About \${input.topik}' }]
    speak:
      model_id: infer/tiny-speech
      task: std/audio-speech
      inputs:
        input: \${nodes.write.result.choices[0].mesage.content}
        voice: nobody
    film:
      model_id: infer/demo
      task: slug/text-to-video
      inputs:
        prompt: \${nodes.speak.result.audiourl}
        fps: eight
        resolution: 1080p
        num_frame: 8
    draw:
      model_id: infer/demo
      task: slug/text-to-imgae
      inputs: {}
    plain:
      model_id: infer/demo
      task: slug/text-to-image
      timeuot: 3
      inputs: { prompt: a cat }
`

async function check(text: string, ...args: string[]) {
  const folder = temporaryFolder()
  const path = join(folder, 'flow.yaml')
  writeFileSync(path, text)
  const ended = await infer(['workflow', 'check', path, '--data-dir', join(folder, 'none'), ...args])
  return { ...ended, path }
}

test('each mistake is one message with line, column and the nearest valid name', async () => {
  const { exitCode, stderr, path } = await check(flow)
  const lines = stderr.split('\n').filter(line => line.includes(path))
  const told = lines.map(line => line.slice(line.indexOf(path) + path.length + 1))
  expect(told.toSorted((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))).toEqual([
    expect.stringMatching(/^7:7: .*model 'infer\/tiny-chta' does not exist here\. Did you mean 'infer\/tiny-chat'\?/),
    expect.stringMatching(/^10:34: .*no parameter 'topik' is declared\. Did you mean 'topic'\?/),
    expect.stringMatching(/^15:9: .*no such member\. Did you mean 'message'\?/),
    expect.stringMatching(/^16:9: .*'infer\/tiny-speech' has no voice 'nobody'/),
    expect.stringMatching(/^21:9: .*no such member\. Did you mean 'audio_url'\?/),
    expect.stringMatching(/^22:9: .*'fps' must be/),
    expect.stringMatching(/^23:9: .*'resolution' must be one of: 480p, 720p/),
    expect.stringMatching(/^24:9: .*no input 'num_frame'\. Did you mean 'num_frames'\?/),
    expect.stringMatching(/^27:7: .*no task 'slug\/text-to-imgae'\. Did you mean 'slug\/text-to-image'\?/),
    expect.stringMatching(/^32:7: .*'timeuot' has no meaning here\. Did you mean 'timeout'\?/),
  ])
  expect(exitCode).toBe(65)
})

test('as JSON each finding has its line and column', async () => {
  const { exitCode, stdout } = await check(flow, '--json')
  const { valid, diagnostics } = JSON.parse(stdout) as {
    valid: boolean
    diagnostics: { type_issues: { code: string; line: number; column: number }[] }
  }
  expect([exitCode, valid]).toEqual([65, false])
  expect(diagnostics.type_issues).toContainEqual(
    expect.objectContaining({ code: 'unknown_input', line: 24, column: 9 }),
  )
})

test('an unknown field of a workflow is refused at its position', async () => {
  const { exitCode, stderr, path } = await check('nmae: a\ndag:\n  nodes: {}\n')
  expect([exitCode, stderr]).toEqual([
    65,
    expect.stringContaining(`${path}:1:1: Unknown parameter: 'nmae'. Did you mean 'name'?`),
  ])
})

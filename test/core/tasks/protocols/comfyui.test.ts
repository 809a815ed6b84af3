import { describe, expect, test } from 'vitest'
import { fillGraph } from '../../../../core/tasks/protocols/comfyui/comfyui.ts'
import { PromptEvents } from '../../../../core/tasks/protocols/comfyui/events.ts'
import { promptRefusal } from '../../../../core/tasks/protocols/comfyui/history.ts'
import type { EngineInputs } from '../../../../core/tasks/protocols/generation-call.ts'
import session from '../../../fixtures/comfyui-session.json' with { type: 'json' }

const graph = {
  1: { class_type: 'EmptyImage', inputs: { width: 32, batch_size: 1 } },
  3: { class_type: 'InferTestSampler', inputs: { text: '', seed: 0, steps: 2 } },
  9: { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: 'some/where/ComfyUI' } },
}

/** Replays messages that were recorded from ComfyUI 0.33; the id of the prompt becomes known after `early` of them. */
function replay(name: 'success' | 'cached' | 'error' | 'interrupted', early = 0) {
  const { messages, answer } = session[name]
  const events = new PromptEvents(graph)
  const seen = messages.flatMap((message, at) => {
    const begun = at === early ? [events.begin(answer.prompt_id)] : []
    const { base64 } = message as { base64?: string }
    return [...begun, events.read(base64 === undefined ? JSON.stringify(message) : Buffer.from(base64, 'base64'))]
  })
  const fractions = seen.flatMap(({ fraction }) => fraction ?? [])
  return { seen, fractions, ended: seen.some(({ ended }) => ended) }
}

describe('recorded messages', () => {
  test('progress grows by steps to its end, with a preview for each step', () => {
    const { seen, fractions, ended } = replay('success')
    expect(fractions).toEqual(fractions.toSorted((a, b) => a - b))
    expect([fractions.at(0), fractions.at(-1), ended]).toEqual([0, 1, true])
    const previews = seen.flatMap(({ preview }) => (preview ? [preview] : []))
    expect(previews.map(bytes => bytes.toString('hex', 0, 3))).toEqual(['ffd8ff', 'ffd8ff'])
  })
  test.each(['cached', 'error', 'interrupted'] as const)('%s: the end is seen', name => {
    expect(replay(name).ended).toBe(true)
  })
  test('an end that comes before the id of the prompt is not lost', () => {
    expect(replay('cached', session.cached.messages.length - 1).ended).toBe(true)
  })
  test('messages of other prompts, and those that cannot be read, mean nothing', () => {
    const events = new PromptEvents(graph)
    events.begin('mine')
    const other = { type: 'executing', data: { node: null, prompt_id: 'other' } }
    for (const message of [
      JSON.stringify(other),
      '{',
      '[]',
      Buffer.alloc(4),
      Buffer.from([0, 0, 0, 4, 255, 255, 255, 255]),
    ])
      expect(events.read(message)).toEqual({})
  })
})

const inputs = (more: Partial<EngineInputs>): EngineInputs => ({
  prompt: 'a cat',
  negative_prompt: null,
  seed: 7,
  width: 64,
  height: 64,
  num_images: 2,
  num_frames: 1,
  fps: 16,
  num_inference_steps: 30,
  guidance_scale: 5,
  strength: 0.8,
  output_format: 'png',
  extra: {},
  image: null,
  mask: null,
  video: null,
  audio: null,
  ...more,
})

test('a graph is filled; what the request did not set stays, and the template is not changed', () => {
  const settings = {
    inputs: { prompt: '3.inputs.text', num_inference_steps: '3.inputs.steps', width: ['1.inputs.width'] },
  }
  const filled = fillGraph(graph, settings, {
    inputs: inputs({ defaulted: ['num_inference_steps'] }),
    files: {},
    folder: 'job_1-abc',
  })
  expect(filled).toMatchObject({
    1: { inputs: { width: 64, batch_size: 1 } },
    3: { inputs: { text: 'a cat', seed: 0, steps: 2 } },
    9: { inputs: { filename_prefix: 'job_1-abc/ComfyUI' } },
  })
  expect(graph[3].inputs.text).toBe('')
})

test.each([
  ['missing_node', 'worker_error', 'Install its custom node and restart the engine.'],
  ['missing_model', 'worker_error', "Put it into the folder of its models that 'ckpt_name' lists"],
  ['range', 'invalid_value', 'Value 5000 bigger than max of 1000'],
  ['no_image', 'worker_error', "ComfyUI refused 'image' of node '10' (LoadImage)"],
] as const)('a recorded refusal, %s, says what to do and is not retried', (name, code, sentence) => {
  const failure = promptRefusal(JSON.stringify(session[name].answer))!
  expect([failure.code, failure.retryable, failure.message]).toEqual([code, false, expect.stringContaining(sentence)])
})

test('answers of other engines are none of ComfyUI', () => {
  expect(promptRefusal('{"error": "bad"}')).toBeUndefined()
  expect(promptRefusal('"node_errors" {')).toBeUndefined()
})

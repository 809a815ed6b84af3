import { invalid } from '../../failure.ts'
import { ulid } from '../../ids.ts'
import { listOf } from '../../json.ts'
import type { ModelSet, ModelSetEntry } from '../../models/engine-traits.ts'
import { parsed } from '../../schemas/issues.ts'
import { type ModerationPart, ModerationRequest, ModerationResponse } from '../../schemas/moderation.ts'
import { isFor } from '../../schemas/task.ts'
import { extraFields, featureCheck, modelFor } from '../catalog.ts'
import { prepareChat } from '../chat/chat-completion.ts'
import type { CallerAnswer, PreparedRequest } from '../engine-request.ts'
import { expectedGpuMs, type Metering, textMetering } from '../metering.ts'
import { engineFault, parseAnswer, usageOfAll } from '../protocols/answer.ts'
import type { TaskName, TextTaskRecord } from '../task.ts'
import { sampleTexts, testQuery, testTexts } from '../task-test.ts'
import { textTask } from '../text-task.ts'
import { judgementLength, judgementOfLabel, judgementRequest, judgementTokens, readJudgement } from './judgement.ts'

/** Names the task. */
const moderation = { id: 'std/moderation', title: 'moderation' } as const satisfies TaskName

type InputKind = 'text' | 'image'

export interface ModerationAnswerFormat {
  task: typeof moderation.id
  modelId: string
  /** Whether a chat model judges, with one answer for each input; else a classifier with one for all. */
  byChat: boolean
  /** The kinds of content of each input. */
  inputs: InputKind[][]
}

/** Checks a moderation body and translates it for a classifier or, if the model does chats, for a chat model. */
function prepareModeration(raw: unknown, catalog: ModelSet): PreparedRequest {
  const request = parsed(ModerationRequest, raw)
  const entry = moderator(request.model, catalog)
  const inputs = inputsOf(request.input)
  const byChat = isFor(entry.tasks, 'chat')
  const answerFormat: ModerationAnswerFormat = {
    task: moderation.id,
    modelId: entry.id,
    byChat,
    inputs: inputs.map(parts => [...new Set(parts.map(({ type }): InputKind => (type === 'text' ? 'text' : 'image')))]),
  }
  return { ...(byChat ? askChat(inputs, entry) : askClassifier(inputs, entry, raw)), stream: false, answerFormat }
}

/** OpenAI's names of models, which its clients send unless they are told another. */
const openAiModel = /^(omni|text)-moderation-/

function moderator(model: string | null | undefined, catalog: ModelSet): ModelSetEntry {
  if (model && (catalog.has(model) || !openAiModel.test(model))) return modelFor(moderation, model, catalog)
  const first = [...catalog.values()].find(({ tasks }) => tasks.includes(moderation.id))
  if (first) return first
  throw invalid(
    'model',
    `No model here does moderation. The operator can add the task '${moderation.id}' to a classifier or to a chat model in infer.yaml.`,
    'model_not_found',
  )
}

function inputsOf(input: ModerationRequest['input']): ModerationPart[][] {
  if (typeof input === 'string') return [[{ type: 'text', text: input }]]
  const texts = input.filter(one => typeof one === 'string')
  return texts.length > 0
    ? texts.map(text => [{ type: 'text' as const, text }])
    : [input.filter(one => typeof one !== 'string')]
}

type Asked = Omit<PreparedRequest, 'stream' | 'answerFormat'>

/** Lets a chat model judge: one request for each input. */
function askChat(inputs: ModerationPart[][], entry: ModelSetEntry): Asked {
  const [first] = inputs
  const image = first!.findIndex(({ type }) => type === 'image_url')
  featureCheck(entry)(image >= 0, 'images', `input[${image}]`)
  const own: ModelSet = new Map([[entry.id, entry]])
  const asked = inputs.map(parts => prepareChat(judgementRequest(parts, entry), own))
  const places = first!.flatMap((part, at) => (part.type === 'image_url' ? [`input[${at}].image_url.url`] : []))
  const images = asked.flatMap(({ images: named = [] }) => named).map((one, at) => ({ ...one, param: places[at]! }))
  return {
    modelId: entry.id,
    path: asked[0]!.path,
    bodies: asked.flatMap(({ bodies }) => bodies),
    images: images.length > 0 ? images : undefined,
  }
}

/** Asks a classifier for the label of each text. */
function askClassifier(inputs: ModerationPart[][], entry: ModelSetEntry, raw: unknown): Asked {
  const texts = inputs.map(parts =>
    parts
      .map((part, at) => {
        if (part.type === 'text') return part.text
        throw invalid(
          `input[${at}]`,
          `The classifier '${entry.id}' reads texts only. Leave 'input[${at}]' out or name a chat model that reads images.`,
          'unsupported_parameter',
        )
      })
      .join('\n'),
  )
  const body = { model: entry.traits.upstreamId, input: texts, ...extraFields(raw, entry) }
  return { modelId: entry.id, path: entry.traits.routes.classify!.path, bodies: [JSON.stringify(body)] }
}

/** Turns the answers of an engine into the caller's. */
function shapeModeration(answers: Uint8Array[], answerFormat: ModerationAnswerFormat): CallerAnswer {
  const objects = answers.map(parseAnswer)
  const { byChat, inputs, modelId } = answerFormat
  const labels = byChat ? [] : Array.isArray(objects[0]?.data) ? objects[0].data : []
  if ((byChat ? objects : labels).length !== inputs.length)
    throw engineFault(`with another number of results than the ${inputs.length} inputs`)
  const response: ModerationResponse = {
    id: `modr-${ulid()}`,
    model: modelId,
    results: inputs.map((kinds, at) =>
      byChat ? readJudgement(contentOf(objects[at]!), kinds, modelId) : judgementOfLabel(labels[at], kinds),
    ),
  }
  return { body: JSON.stringify(response), usage: usageOfAll(objects) }
}

function contentOf({ choices }: Record<string, unknown>): unknown {
  const [choice] = listOf(choices) as ({ message?: { content?: unknown } | null } | null)[]
  return choice?.message?.content
}

/** Meters the tokens of a chat for each input; a classifier uses less. */
const metering: Metering = {
  ...textMetering,
  estimate({ inputs: { input }, length }) {
    const count = Array.isArray(input) && input.every(one => typeof one === 'string') ? input.length : 1
    return {
      usage: {
        inputTokens: length + count * judgementLength,
        outputTokens: count * judgementTokens,
        gpuMs: expectedGpuMs,
      },
    }
  },
}

/** The record of moderation. */
export const moderationTask: TextTaskRecord = {
  ...moderation,
  ...textTask,
  family: 'moderation',
  aliases: ['std/moderations'],
  description: 'Say whether texts or images are harmful, and in which way.',
  path: '/std/v1/moderations',
  test: {
    stream: false,
    body: model => ({ model, input: [testQuery, testTexts[1]] }),
    fault(answer) {
      const { results } = answer as { results: { category_scores: Record<string, number> }[] }
      if (results.length !== 2) return `It returned ${results.length} results for two texts.`
      return results.every(one => Object.values(one.category_scores).every(Number.isFinite))
        ? undefined
        : 'A score is not a number.'
    },
  },
  sample: { input: sampleTexts[0] },
  form: { panel: 'fields', hidden: [], first: [] },
  request: ModerationRequest,
  result: ModerationResponse,
  metering,
  isMediaPath: path => path.at(-1) === 'url' && path.at(-2) === 'image_url',
  prepare: prepareModeration,
  shape: (answers, answerFormat: ModerationAnswerFormat) => shapeModeration(answers, answerFormat),
}

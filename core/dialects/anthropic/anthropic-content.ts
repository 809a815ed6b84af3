import { Failure } from '../../failure.ts'
import type { AnthropicBlock } from './anthropic-schemas.ts'

/** A part of the content of a chat message. */
export type ChatPart = { type: string; text?: string; [member: string]: unknown }

type Content = string | AnthropicBlock[]

const textPart = (text: string): ChatPart => ({ type: 'text', text })

/** Throws Failure for a member that a block of its type must have. */
export function needed<Value>(value: Value | null | undefined, param: string): Value {
  if (value === undefined || value === null)
    throw new Failure('missing_required_parameter', `Missing required parameter: '${param}'.`, { param })
  return value
}

const refused = (param: string, what: string): Failure =>
  new Failure('unsupported_parameter', `'${param}' is ${what}.`, { param })

/** Returns the failure for a type of block that has no place there. */
const unknownBlock = (type: string, param: string): Failure =>
  refused(
    param,
    `a block of the type '${type}', which is not supported here. Server tools are not run: define tools of your own`,
  )

/** Returns parts of one text if no part is something else: some chat templates only read texts. */
export const joinParts = (parts: ChatPart[], separator = '\n\n'): string | ChatPart[] =>
  parts.every(part => part.type === 'text') ? parts.map(part => part.text).join(separator) : parts

/** Translates the blocks of texts, images and documents. Throws Failure for other blocks. */
export function partsOf(content: Content, param: string): ChatPart[] {
  if (typeof content === 'string') return [textPart(content)]
  return content.flatMap((block, at) => partsOfBlock(block, `${param}[${at}]`))
}

/** Translates one block of text, image or document. */
export function partsOfBlock(block: AnthropicBlock, param: string): ChatPart[] {
  switch (block.type) {
    case 'text':
      return [textPart(needed(block.text, `${param}.text`))]
    case 'image':
      return [{ type: 'image_url', image_url: { url: imageUrl(sourceOf(block, param), `${param}.source`) } }]
    case 'document':
      return documentParts(block, param)
    case 'search_result':
      return [
        textPart(headed([block.title, typeof block.source === 'string' ? block.source : undefined], '')),
        ...partsOf(needed(block.content, `${param}.content`), `${param}.content`),
      ]
    default:
      throw unknownBlock(block.type, param)
  }
}

type Source = Exclude<NonNullable<AnthropicBlock['source']>, string>

function sourceOf({ source }: AnthropicBlock, param: string): Source {
  if (typeof source === 'object') return source
  throw new Failure('missing_required_parameter', `'${param}.source' must be an object.`, { param: `${param}.source` })
}

function imageUrl(source: Source, param: string): string {
  switch (source.type) {
    case 'base64':
      return `data:${needed(source.media_type, `${param}.media_type`)};base64,${needed(source.data, `${param}.data`)}`
    case 'url':
      return needed(source.url, `${param}.url`)
    case 'file':
      return needed(source.file_id, `${param}.file_id`)
    default:
      throw refused(param, `of the type '${source.type}'. Send an image as 'base64', 'url' or 'file'`)
  }
}

function documentParts(block: AnthropicBlock, param: string): ChatPart[] {
  const source = sourceOf(block, param)
  const at = `${param}.source`
  const head = headed([block.title, block.context], 'Document')
  switch (source.type) {
    case 'text':
      return [textPart(`${head}\n${needed(source.data, `${at}.data`)}`)]
    case 'content':
      return [textPart(head), ...partsOf(needed(source.content, `${at}.content`), `${at}.content`)]
    case 'base64': {
      const data = `data:${source.media_type ?? 'application/pdf'};base64,${needed(source.data, `${at}.data`)}`
      return [{ type: 'file', file: { file_data: data, ...(block.title ? { filename: block.title } : {}) } }]
    }
    case 'file':
      return [{ type: 'file', file: { file_id: needed(source.file_id, `${at}.file_id`) } }]
    default:
      throw refused(at, `of the type '${source.type}'. Send a document as 'text', 'content', 'base64' or 'file'`)
  }
}

const headed = (lines: (string | null | undefined)[], otherwise: string): string =>
  lines.filter(line => line).join('\n') || otherwise

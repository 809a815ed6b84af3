import { Failure } from '../../../failure.ts'
import type { SentPart } from '../../../schemas/responses-items.ts'

/** A part of the content of a chat message. */
export type ChatPart = { type: string; text?: string; [member: string]: unknown }

/** Throws Failure for a member that an item or part of its type must have. */
export function required<Value>(value: Value | null | undefined, param: string): Value {
  if (value === undefined || value === null)
    throw new Failure('missing_required_parameter', `Missing required parameter: '${param}'.`, { param })
  return value
}

/** Returns one text if no part is something else: some chat templates only read texts. */
export const joined = (parts: ChatPart[]): string | ChatPart[] =>
  parts.every(part => part.type === 'text') ? parts.map(part => part.text).join('') : parts

/** Translates the parts of a message or of a tool's result. Throws Failure for parts that are not supported. */
export const partsOf = (content: string | SentPart[], param: string): ChatPart[] =>
  typeof content === 'string'
    ? [{ type: 'text', text: content }]
    : content.map((part, at) => partOf(part, `${param}[${at}]`))

function partOf(part: SentPart, param: string): ChatPart {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: required(part.text, `${param}.text`) }
    case 'refusal':
      return { type: 'text', text: required(part.refusal, `${param}.refusal`) }
    case 'input_image': {
      const url = required(part.image_url ?? part.file_id, `${param}.image_url`)
      const detail = part.detail === 'low' || part.detail === 'high' ? { detail: part.detail } : {}
      return { type: 'image_url', image_url: { url, ...detail } }
    }
    case 'input_file':
      return filePart(part, param)
    default:
      throw new Failure(
        'unsupported_parameter',
        `'${param}.type' is '${part.type}', which is not supported. Send 'input_text', 'input_image' or 'input_file'.`,
        { param: `${param}.type` },
      )
  }
}

function filePart({ file_id, file_data, filename, file_url }: SentPart, param: string): ChatPart {
  if (file_url !== undefined && file_url !== null)
    throw new Failure(
      'unsupported_parameter',
      `'${param}.file_url' is not supported. Send the file as 'file_data', or upload it with 'POST /std/v1/files' and send its 'file_id'.`,
      { param: `${param}.file_url` },
    )
  const file = file_id ? { file_id } : { file_data: required(file_data, `${param}.file_data`) }
  return { type: 'file', file: { ...file, ...(filename ? { filename } : {}) } }
}

import { presentMembers } from '../../members.ts'
import { parsed } from '../../schemas/issues.ts'
import type { FormNotes } from '../chat-form.ts'
import { type ResponseItem, type ResponseRequest, ResponseTool } from './response-schemas.ts'

/** A tool that the program of the client runs, as a function of the chat completion. */
export interface ToolFunction {
  /** Name in the chat completion, which no other function has. */
  name: string
  type: 'function' | 'custom'
  /** Name by which the client knows it, and the namespace that it is in. */
  ownName: string
  namespace: string | undefined
  /** JSON path of its schema in the request. */
  schemaPath: string
  definition: object
}

/** A tool with its JSON path. */
interface PlacedTool {
  tool: ResponseTool
  path: string
  namespace?: string
}

/** Tools of one list of the request, and its JSON path. */
interface ToolList {
  tools: readonly ResponseTool[]
  at: string
}

/** Names made of a namespace and a name are cut to what OpenAI allows, because other engines may have its limit. */
const longestName = 64

/** The arguments of a custom tool: its only argument is a text. */
const textArgument = {
  type: 'object',
  properties: { input: { type: 'string', description: 'The whole text that the tool takes.' } },
  required: ['input'],
  additionalProperties: false,
}

/**
 * Returns the functions that stand for the tools of these lists. Tools that run at OpenAI, or of which a chat completion
 * knows nothing, are left out. Two tools of the same name in different namespaces are told apart by their namespace.
 */
export function toolFunctions(lists: readonly ToolList[], notes?: FormNotes): ToolFunction[] {
  const placed = lists.flatMap(list => placedTools(list))
  const functions: ToolFunction[] = []
  const times = Map.groupBy(placed, ({ tool }) => tool.name)
  const taken = new Set<string>()
  for (const { tool, path, namespace } of placed) {
    const { type, name } = tool
    if ((type !== 'function' && type !== 'custom') || !name) {
      notes?.ignored.push(path)
      continue
    }
    const alone = namespace === undefined || times.get(name)!.length === 1
    const chatName = alone ? name : `${namespace}__${name}`.slice(-longestName)
    if (taken.has(chatName)) continue
    taken.add(chatName)
    const schemaPath = type === 'custom' ? path : `${path}.parameters`
    functions.push({
      name: chatName,
      type,
      ownName: name,
      namespace,
      schemaPath,
      definition: definitionOf(tool, chatName),
    })
    if (type === 'custom' && tool.format?.type === 'grammar') notes?.ignored.push(`${path}.format`)
  }
  return functions
}

const placedTools = ({ tools, at }: ToolList, namespace?: string): PlacedTool[] =>
  tools.flatMap((tool, index) => {
    const path = `${at}[${index}]`
    if (tool.type === 'namespace')
      return placedTools({ tools: toolsIn(tool), at: `${path}.tools` }, tool.name ?? undefined)
    return [{ tool, path, ...(namespace === undefined ? {} : { namespace }) }]
  })

function definitionOf({ type, description, parameters, strict, format }: ResponseTool, name: string): object {
  if (type === 'function') return presentMembers({ name, description, parameters, strict })
  // The grammar is not enforced, but a model that reads it mostly keeps to it.
  const grammar = format?.definition && `The text follows this ${format.syntax ?? ''} grammar:\n${format.definition}`
  return { name, description: [description, grammar].filter(Boolean).join('\n\n'), parameters: textArgument }
}

/** Returns the tools of a request, and those that its items add, as clients send them that load tools on demand. */
export const toolLists = (own: readonly ResponseTool[], items: readonly ResponseItem[]): ToolList[] => [
  { tools: own, at: 'tools' },
  ...items.flatMap((item, index) =>
    item.type === 'additional_tools' ? [{ tools: toolsIn(item), at: `input[${index}].tools` }] : [],
  ),
]

const toolsIn = ({ tools }: Pick<ResponseTool, 'tools'>): ResponseTool[] =>
  (tools ?? []).map(tool => parsed(ResponseTool, tool))

/** Returns the members of a chat completion that say which functions may be called. */
export function toolMembers(
  functions: readonly ToolFunction[],
  choice: ResponseRequest['tool_choice'],
  notes: FormNotes,
): { tools?: object[]; tool_choice?: unknown } {
  const all = (some: readonly ToolFunction[]) => {
    notes.schemas.push(...some.map(({ schemaPath }) => schemaPath))
    return some.map(({ definition }) => ({ type: 'function', function: definition }))
  }
  if (functions.length === 0) {
    if (choice && choice !== 'auto' && choice !== 'none') notes.ignored.push('tool_choice')
    return {}
  }
  if (!choice) return { tools: all(functions) }
  if (typeof choice === 'string') return { tools: all(functions), tool_choice: choice }
  if (choice.type === 'function' || choice.type === 'custom') {
    const chosen = functions.find(({ ownName }) => ownName === choice.name)
    return {
      tools: all(functions),
      tool_choice: { type: 'function', function: { name: chosen?.name ?? choice.name ?? '' } },
    }
  }
  const allowed =
    choice.type === 'allowed_tools'
      ? functions.filter(({ ownName }) => choice.tools?.some(({ name }) => name === ownName))
      : []
  // A tool that runs at OpenAI cannot be called: the model chooses among the others.
  if (allowed.length === 0) notes.ignored.push('tool_choice')
  if (allowed.length === 0 && choice.type === 'allowed_tools') return {}
  if (allowed.length === 0) return { tools: all(functions) }
  return { tools: all(allowed), tool_choice: choice.mode === 'required' ? 'required' : 'auto' }
}

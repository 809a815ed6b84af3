import type { Document, Node } from 'yaml'
import { isMap, isScalar, LineCounter, parseDocument } from 'yaml'
import type { Path } from './workflow-document.ts'

/** Something wrong or unusual, with the place where it is shown. */
export interface Problem {
  severity: 'error' | 'warning'
  message: string
  /** Id of the node. */
  node?: string
  /** The path in the node, or in the document if it is about no node. */
  field?: string
  /** Both ends, if it is about an edge. */
  edge?: { from: string; to: string }
  /** In the text, from 1. The text is parsed when the line is read: that takes long, and most problems are shown elsewhere. */
  readonly line: number
}

type Finding = Pick<Problem, 'severity' | 'message' | 'edge'> & { node_id?: string; path?: string; nodes?: string[] }

/** Puts the findings of the server where they belong. */
export function problemsOf(findings: readonly Finding[], text: string): Problem[] {
  const lineOf = openLines(text)
  return findings.map(({ severity, message, node_id: node, path, edge, nodes }) => {
    const about = node ?? nodes?.[0] ?? edge?.from
    const at =
      node === undefined && path !== undefined ? segments(path) : about === undefined ? ['dag'] : nodePlace(about, path)
    return {
      severity,
      message,
      node,
      field: path,
      edge,
      get line() {
        return lineOf(at)
      },
    }
  })
}

/** The problem of a refused request: `param` names the field, such as `dag.nodes.write.task`. */
export function problemOfRefusal(message: string, param: string | undefined, text: string): Problem {
  const lineOf = openLines(text)
  const at = segments(param ?? '')
  const [root, group, node, ...field] = at
  const inNode = root === 'dag' && group === 'nodes' && node !== undefined
  return {
    severity: 'error',
    message,
    ...(inNode ? { node: String(node), field: field.join('.') } : param === undefined ? {} : { field: param }),
    get line() {
      return lineOf(at)
    },
  }
}

/** Whether a problem is about a member of something, or about a part of that member. */
const isAbout = (field: string | undefined, member: string): boolean =>
  field !== undefined && (field === member || field.startsWith(`${member}.`) || field.startsWith(`${member}[`))

/** The problem that the field of a member shows; `part` is the place of what has the member. */
export function problemAt(problems: readonly Problem[], part: Path, member: string): Problem | undefined {
  const [root, group, id] = part
  const ofNode = root === 'dag' && group === 'nodes' ? String(id) : undefined
  const name = ofNode === undefined ? [...part, member].join('.') : member
  return problems.find(({ node, field }) => node === ofNode && isAbout(field, name))
}

/** The problems of a node that none of these members shows. */
export const otherProblems = (problems: readonly Problem[], id: string, members: readonly string[]): Problem[] =>
  problems.filter(({ node, field }) => node === id && !members.some(member => isAbout(field, member)))

export interface ProblemCounts {
  errors: number
  warnings: number
}

/** How many problems of each severity a node has. */
export function countProblems(problems: readonly Problem[], id: string | undefined): ProblemCounts {
  const own = problems.filter(({ node }) => node !== undefined && node === id)
  const errors = own.filter(({ severity }) => severity === 'error').length
  return { errors, warnings: own.length - errors }
}

const nodePlace = (id: string, path = ''): Path => ['dag', 'nodes', id, ...segments(path)]

/** `inputs.messages[0].content` as segments. */
export const segments = (path: string): Path =>
  [...path.matchAll(/\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([^.[\]]+)/g)].map(([, index, quoted, name]) =>
    index === undefined ? (quoted ?? name!) : Number(index),
  )

/** Returns the function that finds the line of a path. It parses the text once, when it is first called. */
function openLines(text: string): (path: Path) => number {
  let parsed: { document: Document; lines: LineCounter } | undefined
  return path => {
    if (!parsed) {
      const lines = new LineCounter()
      parsed = { document: parseDocument(text, { lineCounter: lines }), lines }
    }
    return deepestLine(parsed.document, parsed.lines, path)
  }
}

/** The line of the deepest part of the path that the document has. */
function deepestLine(document: Document, lines: LineCounter, path: Path): number {
  let line = 1
  for (let length = 1; length <= path.length; length++) {
    const parent = length === 1 ? document.contents : document.getIn(path.slice(0, length - 1), true)
    const key = path[length - 1]!
    const pair = isMap(parent)
      ? parent.items.find(({ key: one }) => String(isScalar(one) ? one.value : one) === String(key))
      : undefined
    const found = (pair?.key ?? document.getIn(path.slice(0, length), true)) as Node | undefined
    if (!found?.range) break
    line = lines.linePos(found.range[0]).line
  }
  return line
}

import { type ReactNode, useEffect, useRef, useState } from 'react'
import { optionsOf, SelectField, TextArea, TextField } from '../../../components/fields.tsx'
import { Notice } from '../../../components/page.tsx'
import { editorText } from '../../../text/editor.ts'
import { type Problem, problemAt } from '../document/diagnostics.ts'
import { setValue } from '../document/edits.ts'
import type { Path } from '../document/workflow-document.ts'
import { useEditor, useProblems } from '../editor-context.ts'

/** The id of the heading, to which the focus moves. There is one at a time. */
export const propertiesId = 'properties'

/** The heading of the properties of a node or of the workflow. */
export const PropertiesHeading = ({ children }: { children: ReactNode }) => (
  <h2 id={propertiesId} tabIndex={-1} className="min-w-0 truncate font-semibold">
    {children}
  </h2>
)

/** Milliseconds without typing after which the document changes. */
const pauseMs = 80

/** Keeps what a person types, and passes it on after a pause, on Enter and when the field is left. */
function useDraft(value: string, commit: (value: string) => void) {
  const [draft, setDraft] = useState<string>()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const latest = useRef({ draft, commit })
  useEffect(() => {
    latest.current = { draft, commit }
  })
  const flush = () => {
    clearTimeout(timer.current)
    const { draft: typed, commit: pass } = latest.current
    latest.current.draft = undefined
    setDraft(undefined)
    if (typed !== undefined && typed !== value) pass(typed)
  }
  const type = (next: string) => {
    setDraft(next)
    latest.current.draft = next
    clearTimeout(timer.current)
    timer.current = setTimeout(() => latest.current.commit(next), pauseMs)
  }
  // A field that disappears with its node must not lose the last letters.
  useEffect(
    () => () => {
      clearTimeout(timer.current)
      const { draft: typed, commit: pass } = latest.current
      if (typed !== undefined) pass(typed)
    },
    [],
  )
  return { shown: draft ?? value, type, flush }
}

interface DraftProps {
  label: string
  value: string
  commit: (value: string) => void
  hint?: ReactNode
  error?: string | undefined
}

/** A text field whose value is part of the document. */
export function DraftField({ value, commit, ...rest }: DraftProps & { inputMode?: 'numeric' | 'decimal' }) {
  const { shown, type, flush } = useDraft(value, commit)
  return (
    <TextField
      {...rest}
      disabled={useEditor().readOnly}
      value={shown}
      change={type}
      onBlur={flush}
      onKeyDown={event => event.key === 'Enter' && flush()}
    />
  )
}

/** The same with several lines. */
export function DraftArea({ value, commit, code = false, ...rest }: DraftProps & { code?: boolean }) {
  const { shown, type, flush } = useDraft(value, commit)
  return (
    <TextArea
      {...rest}
      disabled={useEditor().readOnly}
      rows={Math.min(10, Math.max(2, shown.split('\n').length, Math.ceil(shown.length / 40)))}
      value={shown}
      className={code ? 'font-mono text-xs' : ''}
      change={type}
      onBlur={flush}
    />
  )
}

/** A choice whose value is part of the document. */
export const ChoiceField = (props: Parameters<typeof SelectField>[0]) => (
  <SelectField {...props} disabled={useEditor().readOnly} />
)

/** A field only for a value that takes effect when it is left, because each letter would rename something. */
export function NameField({ value, commit, ...rest }: DraftProps) {
  const [draft, setDraft] = useState<string>()
  const leave = () => {
    setDraft(undefined)
    const next = draft?.trim()
    if (next && next !== value) commit(next)
  }
  return (
    <TextField
      {...rest}
      disabled={useEditor().readOnly}
      value={draft ?? value}
      change={setDraft}
      onBlur={leave}
      onKeyDown={event => event.key === 'Enter' && leave()}
    />
  )
}

type Text = typeof editorText
/** Texts that name a field, of which others have the hint and the choices. */
type Label = { [K in keyof Text]: Text[K] extends string ? K : never }[keyof Text]
type Choice = { [K in keyof Text]: K extends `${infer Name extends Label}Choices` ? Name : never }[keyof Text]

/**
 * Draws fields for members of a part of the document, such as `retries.max` of a node. A member without a value is not
 * in the document.
 */
export function useMembers(part: Path) {
  const { apply } = useEditor()
  const problems = useProblems()
  const errorAt = (member: string) => problemAt(problems, part, member)?.message
  const set = (member: string, value: unknown) => {
    const at = [...part, ...member.split('.')]
    return apply(setValue(at, value), at.join('\n'))
  }
  const shared = (name: Label, member: string) => ({
    label: editorText[name],
    hint: (editorText as Partial<Record<string, unknown>>)[`${name}Hint`] as string | undefined,
    error: errorAt(member),
  })
  return {
    set,
    errorAt,
    text: (name: Label, member: string, value = '') => (
      <DraftField {...shared(name, member)} value={value} commit={text => set(member, text || undefined)} />
    ),
    number: (
      name: Label,
      member: string,
      value: number | string | undefined,
      inputMode: 'numeric' | 'decimal' = 'numeric',
    ) => (
      <DraftField
        {...shared(name, member)}
        inputMode={inputMode}
        value={String(value ?? '')}
        commit={text => set(member, numberIn(text))}
      />
    ),
    /** A text of several lines. */
    area: (name: Label, member: string, value = '') => (
      <DraftArea {...shared(name, member)} value={value} commit={text => set(member, text || undefined)} />
    ),
    /** Several values, one on each line. */
    lines: (name: Label, member: string, values: readonly unknown[], read: (line: string) => unknown, code = false) => (
      <DraftArea
        {...shared(name, member)}
        code={code}
        value={values.map(String).join('\n')}
        commit={text => {
          const lines = text.split('\n').flatMap(line => line.trim() || [])
          set(member, lines.length === 0 ? undefined : lines.map(read))
        }}
      />
    ),
    /** One of the choices that have a name; `others` has the values of those that are not written as they are. */
    choice: (name: Choice, member: string, value: string, others: Readonly<Record<string, unknown>>) => (
      <ChoiceField
        {...shared(name, member)}
        value={value}
        options={optionsOf(editorText[`${name}Choices`])}
        change={chosen => set(member, chosen in others ? others[chosen] : chosen)}
      />
    ),
  }
}

/** The problems that are about what is shown. */
export const ProblemNotices = ({ problems }: { problems: readonly Problem[] }) =>
  problems.map(({ message, severity }) => (
    <Notice key={message} kind={severity === 'error' ? 'bad' : 'warning'}>
      {message}
    </Notice>
  ))

/** The number of a text; the text itself if it is none, so that the server can say what is wrong. */
export function numberIn(text: string): number | string | undefined {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed) : trimmed
}

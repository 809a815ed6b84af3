import { type ReactNode, useEffect, useRef, useState } from 'react'
import { SelectField, TextArea, TextField } from '../../../components/fields.tsx'
import { Notice } from '../../../components/page.tsx'
import { type Problem } from '../document/diagnostics.ts'
import { useEditor } from '../editor-context.ts'

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

/** The lines of a text that have something in them. */
export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean)

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

import { replaceEqualDeep } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { ApiFailure, api, dataOf, type Schema } from '../../api/client.ts'
import { announce } from '../../components/announcements.tsx'
import { editorText } from '../../text/editor.ts'
import { type Problem, problemOfRefusal, problemsOf } from './document/diagnostics.ts'
import { type Edit, EditFault } from './document/edits.ts'
import { changed, openHistory, redone, undone } from './document/history.ts'
import { documentText, type Parsed, parseWorkflow, readDocument } from './document/workflow-document.ts'

/**
 * Owns the text of the edited workflow, its history, and what it says. `before`: a text without faults, for the graph if
 * `initial` has some. `read`: what a text says that was read already.
 */
export function useDocument(initial: string, before: string, read?: { text: string; parsed: Parsed }) {
  const [history, setHistory] = useState(() => openHistory(initial))
  // Read by several edits of one moment, each of which follows the one before.
  const latest = useRef(history)
  const text = history.present
  const known = useRef(read)
  const parsedOf = useCallback((wanted: string): Parsed => {
    if (known.current?.text !== wanted) known.current = { text: wanted, parsed: parseWorkflow(wanted) }
    return known.current.parsed
  }, [])
  const parsed = useMemo(() => parsedOf(text), [parsedOf, text])
  const [begun] = useState(() =>
    parsed.faults.length === 0 ? { text, parsed } : { text: before, parsed: parseWorkflow(before) },
  )
  const shown = useRef(begun.parsed.workflow)
  const sound = useRef(begun.text)
  // While a text has faults the graph shows what it said before. Unchanged parts stay the same objects.
  if (parsed.faults.length === 0) {
    shown.current = replaceEqualDeep(shown.current, parsed.workflow)
    sound.current = text
  }

  const become = useCallback((next: typeof history) => {
    latest.current = next
    setHistory(next)
  }, [])
  const setText = useCallback(
    (next: string, group?: string) => become(changed(latest.current, next, Date.now(), group)),
    [become],
  )
  const apply = useCallback(
    (edit: Edit, group?: string): boolean => {
      const before = latest.current.present
      const { document, faults } = parsedOf(before)
      if (faults[0]) {
        announce('bad', editorText.faulty(faults[0].line))
        return false
      }
      try {
        // Until the edit is complete the document says neither the text before nor the one after.
        known.current = undefined
        edit(document)
        const after = documentText(document, before)
        known.current = { text: after, parsed: readDocument(document, after) }
        setText(after, group)
        return true
      } catch (thrown) {
        if (!(thrown instanceof EditFault)) throw thrown
        announce('bad', thrown.message)
        return false
      }
    },
    [parsedOf, setText],
  )
  return {
    text,
    parsed,
    workflow: shown.current,
    /** The newest text without faults. */
    sound: sound.current,
    setText,
    apply,
    canUndo: history.past.length > 0,
    canRedo: history.future.length > 0,
    undo: useCallback(() => become(undone(latest.current)), [become]),
    redo: useCallback(() => become(redone(latest.current)), [become]),
    /** Begins again with another text, without a history. */
    reset: useCallback((next: string) => become(openHistory(next)), [become]),
  }
}

/** Milliseconds without a change after which the server checks the workflow. */
const pauseMs = 30

/** The problems of a workflow: faults of its text at once, findings of the server after a pause. */
export function useValidation(text: string, { faults, value, workflow }: Parsed, enabled: boolean) {
  const [found, setFound] = useState<{ problems: Problem[]; failure?: string }>({ problems: [] })
  useEffect(() => {
    if (!enabled || value === undefined) return
    const controller = new AbortController()
    const check = async () => {
      const {
        dag = { nodes: {} },
        parameters,
        region,
        timeout,
        budget,
        concurrency,
      } = value as Partial<Schema<'WorkflowToValidate'>>
      try {
        const { diagnostics } = await dataOf(
          api.POST('/api/workflows/validate', {
            body: { dag, parameters, region, timeout, budget, concurrency },
            signal: controller.signal,
          }),
        )
        const findings = [...diagnostics.warnings, ...diagnostics.type_issues]
        setFound({ problems: problemsOf(findings, text) })
      } catch (thrown) {
        if (controller.signal.aborted || !(thrown instanceof ApiFailure)) return
        const { status, message, param } = thrown
        if (status === 400) setFound({ problems: [problemOfRefusal(message, param, text)] })
        else setFound(now => ({ ...now, failure: editorText.unchecked(message) }))
      }
    }
    const timer = setTimeout(() => void check(), pauseMs)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [text, value, enabled])

  const unnamed = workflow.name.trim() === '' && enabled
  return useMemo((): { problems: readonly Problem[]; failure?: string | undefined } => {
    if (faults.length > 0) return { problems: faults.map(fault => ({ severity: 'error', ...fault })) }
    const nameMissing: Problem = { severity: 'error', message: editorText.nameMissing, field: 'name', line: 1 }
    return unnamed ? { ...found, problems: [nameMissing, ...found.problems] } : found
  }, [faults, unnamed, found])
}

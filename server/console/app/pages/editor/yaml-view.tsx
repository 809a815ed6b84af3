import { defaultKeymap, indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { defaultHighlightStyle, HighlightStyle, indentUnit, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint'
import { search, searchKeymap } from '@codemirror/search'
import { Annotation, EditorState } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import { editorText } from '../../text/editor.ts'
import type { Problem } from './document/diagnostics.ts'

/** Marks changes that the graph has made, which must not be passed on as typed ones. */
const fromOutside = Annotation.define<boolean>()

const theme = EditorView.theme({
  '&': { backgroundColor: 'var(--color-surface)', color: 'var(--color-text)', height: '100%', fontSize: '12px' },
  '.cm-scroller': { fontFamily: 'var(--font-mono)' },
  '.cm-gutters': { backgroundColor: 'var(--color-raised)', color: 'var(--color-muted)', border: 'none' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--color-accent-soft) 50%, transparent)' },
  '.cm-cursor': { borderLeftColor: 'var(--color-text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--color-accent-soft)' },
  '.cm-tooltip, .cm-panels': { backgroundColor: 'var(--color-raised)', color: 'var(--color-text)' },
  '.cm-button, .cm-textfield': {
    background: 'var(--color-surface)',
    border: '1px solid var(--color-control)',
    color: 'inherit',
  },
})
const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--color-accent)' },
  { tag: [tags.comment], color: 'var(--color-muted)', fontStyle: 'italic' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--color-good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--color-warning)' },
])

interface YamlViewProps {
  text: string
  change: (text: string) => void
  problems: readonly Problem[]
  /** The line to show, from 1; another object shows it again. */
  line: { number: number } | undefined
  readOnly: boolean
  undo: () => void
  redo: () => void
}

/** The text of the workflow. It changes with the graph, and the graph with it. */
export default function YamlView({ text, change, problems, line, readOnly, undo, redo }: YamlViewProps) {
  const place = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const actions = useRef({ change, undo, redo })
  useEffect(() => {
    actions.current = { change, undo, redo }
  })

  // Runs once, with the first text; later texts arrive as changes.
  useEffect(() => {
    const run = (name: 'undo' | 'redo') => () => {
      actions.current[name]()
      return true
    }
    const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.nonce ?? ''
    const made = new EditorView({
      parent: place.current!,
      doc: text,
      extensions: [
        EditorView.cspNonce.of(nonce),
        lineNumbers(),
        lintGutter(),
        drawSelection(),
        highlightActiveLine(),
        search({ top: true }),
        yaml(),
        indentUnit.of('  '),
        EditorState.tabSize.of(2),
        syntaxHighlighting(colours),
        syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
        theme,
        EditorView.lineWrapping,
        EditorState.readOnly.of(readOnly),
        EditorView.contentAttributes.of({ 'aria-label': editorText.yaml }),
        keymap.of([
          { key: 'Mod-z', run: run('undo'), preventDefault: true },
          { key: 'Mod-y', mac: 'Mod-Shift-z', run: run('redo'), preventDefault: true },
          { key: 'Mod-Shift-z', run: run('redo'), preventDefault: true },
          // Escape, then Tab leaves the editor: Tab alone indents.
          ...searchKeymap,
          ...defaultKeymap,
          indentWithTab,
        ]),
        EditorView.updateListener.of(update => {
          if (!update.docChanged || update.transactions.some(one => one.annotation(fromOutside))) return
          actions.current.change(update.state.doc.toString())
        }),
      ],
    })
    view.current = made
    return () => made.destroy()
  }, [readOnly])

  useEffect(() => {
    const shown = view.current!
    const edit = difference(shown.state.doc.toString(), text)
    if (edit) shown.dispatch({ changes: edit, annotations: fromOutside.of(true) })
  }, [text])

  useEffect(() => {
    const shown = view.current!
    const found = problems.flatMap(({ line: number, message, severity }): Diagnostic[] => {
      if (number > shown.state.doc.lines) return []
      const { from, to, text: content } = shown.state.doc.line(number)
      return [{ from: Math.min(to, from + content.search(/\S|$/)), to, severity, message }]
    })
    shown.dispatch(setDiagnostics(shown.state, found))
  }, [problems])

  useEffect(() => {
    const shown = view.current!
    if (!line || line.number > shown.state.doc.lines) return
    const { from } = shown.state.doc.line(line.number)
    shown.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: 'center' }) })
    shown.focus()
  }, [line])

  return <div ref={place} className="border-line h-[28rem] overflow-hidden rounded-md border lg:h-full" />
}

/** The smallest replacement that makes one text of the other, so that the cursor stays; undefined if they are equal. */
function difference(before: string, after: string): { from: number; to: number; insert: string } | undefined {
  if (before === after) return undefined
  const most = Math.min(before.length, after.length)
  let start = 0
  while (start < most && before[start] === after[start]) start++
  let end = 0
  while (end < most - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) }
}

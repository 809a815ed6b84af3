import { heldBack } from '../stop.ts'
import { type Automaton, notBeginningWith, step, untilMarker } from './automaton.ts'
import { type CallForm, openingsOf } from './call-form.ts'
import { isSpace, openJsonCall, openValue } from './json-call.ts'

/** A call begins with its name; the arguments that follow are its. */
export type CallEvent = { kind: 'call'; name: string } | { kind: 'arguments'; text: string }
export type AnswerEvent = CallEvent | { kind: 'content'; text: string } | { kind: 'reasoning'; text: string }

/** What a parser is in the middle of. */
type Stage = 'opening' | 'text' | 'body' | 'call' | 'list' | 'named' | 'arguments' | 'after'

/**
 * Takes an answer apart into what it says and the calls it makes. Marks and the white space around them are in
 * neither. What begins like a call and turns out to be none is content. However the text is cut into pieces, the
 * events are the same when neighbours of one kind are joined.
 */
export function openCallParser(form: CallForm, names: readonly string[]) {
  const opening = form.bare ? openingOf(form, names) : undefined
  let stage: Stage = opening ? 'opening' : 'text'
  let held = ''
  let calls = 0
  /** The calls before the one that is being read. */
  let before = 0
  let state = 0
  let inList = false
  let read = openJsonCall(() => {})
  let value = openValue()
  let events: AnswerEvent[] = []

  function say(event: AnswerEvent) {
    if (event.kind === 'call') calls++
    append(events, event)
  }

  /** Every stage takes one character and says whether it has used it. */
  const stages: Record<Stage, (character: string) => boolean> = {
    /** The beginning of an answer that may be a call without a mark. */
    opening(character) {
      held += character
      const target = step(opening!.automaton, state, character)
      if (target === 'nowhere') {
        const begun = held
        startCall()
        for (const known of begun.trimStart()) stages.call(known)
      } else if (typeof target === 'number' && target < opening!.rest) state = target
      else {
        stage = 'text'
        const begun = held
        held = ''
        for (const known of begun) stages.text(known)
      }
      return true
    },
    /** Holds back what may belong to a marker, and the white space before it. */
    text(character) {
      held += character
      if (held.endsWith(form.marker)) {
        say({ kind: 'content', text: held.slice(0, -form.marker.length).trimEnd() })
        held = ''
        stage = 'body'
        return true
      }
      const sure = held.slice(0, held.length - heldBack(held, [form.marker])).trimEnd()
      // White space behind a call is not the beginning of a text.
      if (sure !== '') {
        say({ kind: 'content', text: sure })
        held = held.slice(sure.length)
      }
      return true
    },
    /** After a marker: the first character determines the form of the call. */
    body(character) {
      if (isSpace(character)) return true
      if (form.family.startsWith('mistral') && character === '[') {
        inList = true
        stage = 'list'
        return true
      }
      if (form.family.startsWith('mistral') && character !== '{') {
        stage = 'named'
        return false
      }
      startCall()
      return false
    },
    call(character) {
      held += character
      const progress = read(character)
      if (progress === 'more') return true
      if (progress === 'broken' && calls === before) say({ kind: 'content', text: held })
      held = ''
      stage = inList ? 'list' : 'after'
      return true
    },
    list(character) {
      if (character === ']') {
        inList = false
        stage = 'after'
      } else if (!isSpace(character) && character !== ',') {
        startCall()
        return false
      }
      return true
    },
    /** A name, perhaps an id, then the arguments. */
    named(character) {
      if (character === '{') {
        say({ kind: 'call', name: /^[^[\s]*/.exec(held)![0] })
        held = ''
        value = openValue()
        stage = 'arguments'
        return false
      }
      held += character
      return true
    },
    arguments(character) {
      say({ kind: 'arguments', text: character })
      if (value(character) === 'last') stage = 'after'
      return true
    },
    /** Behind a call: what closes it, another one, or text after all. */
    after(character) {
      held += character
      const whole = held.trimStart()
      const text = whole.startsWith(form.separator) ? whole.slice(form.separator.length).trimStart() : whole
      if (text === form.close || text === form.marker) {
        held = ''
        if (text === form.marker) stage = 'body'
        return true
      }
      // Nothing yet is the beginning of every mark.
      if (form.close?.startsWith(text) || form.marker.startsWith(text)) return true
      held = ''
      if (form.bare && text === '{') {
        startCall()
        return false
      }
      stage = 'text'
      for (const known of whole) stages.text(known)
      return true
    },
  }

  function startCall() {
    stage = 'call'
    before = calls
    held = ''
    read = openJsonCall(say)
  }

  function taken(): AnswerEvent[] {
    const pending = events
    events = []
    return pending
  }

  return {
    push(text: string): AnswerEvent[] {
      for (const character of text) while (!stages[stage](character));
      return taken()
    },
    /** What is left when no text follows. Of a call that broke off, what was not understood is dropped. */
    end(): AnswerEvent[] {
      if (stage === 'opening' || (stage === 'text' && (calls === 0 || held.trim() !== '')))
        say({ kind: 'content', text: held })
      held = ''
      return taken()
    },
    get calls(): number {
      return calls
    },
    /** Whether a call has begun whose end has not come. */
    get calling(): boolean {
      return !['opening', 'text', 'after'].includes(stage)
    },
  }
}

/** Adds an event, to the last one where that says more of the same. */
export function append(events: AnswerEvent[], event: AnswerEvent): void {
  const last = events.at(-1)
  if (event.kind === 'call') events.push(event)
  else if (event.text === '') return
  else if (last !== undefined && last.kind !== 'call' && last.kind === event.kind) last.text += event.text
  else events.push({ ...event })
}

/** Text in which a call may come behind its marker, and which may not itself begin as one. */
export function openingOf(
  form: CallForm,
  names: readonly string[],
  found = 'calls',
): { automaton: Automaton; rest: number } {
  return notBeginningWith(openingsOf(names), offset => untilMarker(form.marker, { rule: found }, true, offset))
}

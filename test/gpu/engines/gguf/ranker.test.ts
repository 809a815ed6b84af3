import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { type PairMarks, pairOf } from '../../../../gpu/engines/gguf/rerank.ts'

const [bos, eos, sep, query, document] = [1, 2, 3, 10, 20] as unknown as Token[]
const bert: PairMarks = { bos: bos!, eos: null, sep: sep!, addBos: true, addEos: false, addSep: true }

/** Source: `format_prompt_rerank` of llama.cpp v0.5.0. */
test.each<[model: string, marks: PairMarks, tokens: number[]]>([
  ['plain BERT', bert, [1, 10, 3, 20]],
  ['BERT whose file names an end token that is not added', { ...bert, eos: eos! }, [1, 10, 3, 20]],
  ['XLM-RoBERTa', { bos: bos!, eos: eos!, sep: eos!, addBos: true, addEos: true, addSep: true }, [1, 10, 2, 2, 20, 2]],
  ['no end token: the separator replaces it', { ...bert, addEos: true }, [1, 10, 3, 3, 20, 3]],
  ['nothing is added', { ...bert, addBos: false, addSep: false }, [10, 20]],
])('%s', (_, marks, tokens) => expect(pairOf([query!], [document!], marks)).toEqual(tokens))

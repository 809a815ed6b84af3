import { openRandom, tensor, writeGguf } from '../bin/gguf-writer.ts'

/** A LoRA adapter of `tinyChatRandom`, as convert_lora_to_gguf.py writes them: random, and strong enough to change answers. */
export function tinyLora(
  seed = 1,
  { architecture = 'llama', width = 64, rank = 4 }: { architecture?: string; width?: number; rank?: number } = {},
): Buffer {
  const random = openRandom(seed)
  const matrices = [0, 1].flatMap(block =>
    ['attn_q', 'attn_v', 'attn_output', 'ffn_down'].flatMap(part => [
      tensor(`blk.${block}.${part}.weight.lora_a`, [width, rank], random.normal),
      tensor(`blk.${block}.${part}.weight.lora_b`, [rank, width], random.normal),
    ]),
  )
  return writeGguf(
    {
      'general.type': ['string', 'adapter'],
      'general.architecture': ['string', architecture],
      'adapter.type': ['string', 'lora'],
      'adapter.lora.alpha': ['f32', 2 * rank],
    },
    matrices,
  )
}

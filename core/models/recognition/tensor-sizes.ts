/** The tensors of a file by name, with their number of elements, which quantization does not change. */
export type TensorSizes = ReadonlyMap<string, number>
